#include "fusion/cpu/panels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fusion/graph/arguments.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kPanelBytes = std::int64_t{512} << 10;  // half of a second cache
constexpr std::int64_t kNarrowest = 32;  // channels: below that products lose more than caches give

/// Positions of a chain's nodes, first to last.
using Chain = std::vector<std::size_t>;

class Cutter {
 public:
  Cutter(const Graph& graph, std::vector<int>& index, std::int64_t n)
      : in_(graph), index_(index), n_(n), readers_(graph.values.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const ValueId id : inputs_of(graph.nodes[i])) readers_[static_cast<std::size_t>(id)].push_back(i);
    }
  }

  Graph run() {
    std::map<std::size_t, Chain> by_last;
    std::vector<bool> cut(in_.nodes.size(), false);
    for (std::size_t i = 0; i < in_.nodes.size(); ++i) {
      const Chain chain = chain_from(i);
      if (chain.empty()) continue;
      for (const std::size_t node : chain) cut[node] = true;
      by_last[chain.back()] = chain;
    }
    if (by_last.empty()) return in_;
    out_ = in_;
    out_.nodes.clear();
    for (std::size_t i = 0; i < in_.nodes.size(); ++i) {
      if (!cut[i]) add(in_.nodes[i], index_[i]);
      // A chain stands where its last node stood: whatever it reads is there by then.
      if (const auto found = by_last.find(i); found != by_last.end()) add_panels(found->second);
    }
    index_ = std::move(new_index_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Shape& shape(ValueId id) const { return in_.values[static_cast<std::size_t>(id)].shape; }
  [[nodiscard]] std::int64_t channels(const Chain& chain) const {
    return shape(in_.nodes[chain.front()].outputs.front()).back();
  }
  [[nodiscard]] std::int64_t panel(std::int64_t rows, std::int64_t bytes) const {
    return std::max(kNarrowest, kPanelBytes / std::max<std::int64_t>(rows, 1) / bytes / kNarrowest * kNarrowest);
  }

  [[nodiscard]] bool is_output(ValueId id) const {
    return std::find(in_.outputs.begin(), in_.outputs.end(), id) != in_.outputs.end();
  }

  [[nodiscard]] std::optional<std::size_t> only_reader(ValueId id) const {
    const auto& readers = readers_[static_cast<std::size_t>(id)];
    return readers.size() == 1 && !is_output(id) ? std::optional(readers.front()) : std::nullopt;
  }

  [[nodiscard]] bool is_width_of(const ValueId* id, std::int64_t wide) const {
    return id != nullptr && std::any_of(in_.weights.begin(), in_.weights.end(), [&](const Weight& w) {
             return w.value == *id && w.shape.size() == 2 && w.shape[0] == wide;
           });
  }

  // The chain that begins with a linear layer at `i`, if there is one that does not fit the cache.
  [[nodiscard]] Chain chain_from(std::size_t i) const {
    if (in_.nodes[i].op != "aten::linear") return {};
    const ValueId y = first_output(in_.nodes[i]);
    if (y == kNoValue || shape(y).empty()) return {};
    const std::int64_t wide = shape(y).back();
    // Sizes are the file's word for it; only those of weights are known to be so.
    if (!is_width_of(argument_if<ValueId>(in_.nodes[i], 1), wide)) return {};
    const std::int64_t rows = elements_of(shape(y), n_) / std::max<std::int64_t>(wide, 1);
    const std::int64_t width = panel(rows, size_of(in_.values[static_cast<std::size_t>(y)].dtype));
    if (wide < 2 * width) return {};
    Chain chain = {i};
    ValueId value = y;
    while (const auto next = only_reader(value)) {
      const Node& node = in_.nodes[*next];
      const auto* first = argument_if<ValueId>(node, 0);
      if (first == nullptr || *first != value || first_output(node) == kNoValue) return {};
      chain.push_back(*next);
      if (ends(node, value)) return chain;
      if (!goes_on(node, value, wide)) return {};
      value = first_output(node);
    }
    return {};
  }

  // Whether the op treats the channels, the last dimension, each by itself and keeps them there.
  [[nodiscard]] bool goes_on(const Node& node, ValueId input, std::int64_t wide) const {
    if (node.op == "aten::relu") return true;
    const Shape& after = shape(first_output(node));
    if (after.empty() || after.back() != wide) return false;
    if (node.op == "aten::batch_norm") return shape(input).size() == 2;
    if (node.op == "aten::flatten.using_ints") return true;
    return node.op == "aten::view" || node.op == "aten::reshape" ? resized(argument_at(node, 1), wide, wide).has_value()
                                                                 : false;
  }

  // Whether it is a largest element or a mean over dimensions other than the last, of which nobody wants positions.
  [[nodiscard]] bool ends(const Node& node, ValueId input) const {
    const auto last = static_cast<std::int64_t>(shape(input).size()) - 1;
    const auto keeps_channels = [&](std::int64_t d) { return d != last && d != -1; };
    if (node.op == "aten::max.dim") {
      const auto* dim = argument_if<std::int64_t>(node, 1);
      const bool positions = node.outputs.size() > 1 && node.outputs[1] != kNoValue &&
                             !readers_[static_cast<std::size_t>(node.outputs[1])].empty();
      return dim != nullptr && keeps_channels(*dim) && !positions && !is_output(node.outputs[0]);
    }
    if (node.op != "aten::amax" && node.op != "aten::mean.dim") return false;
    const auto* dims = argument_if<std::vector<std::int64_t>>(node, 1);
    return dims != nullptr && !dims->empty() && std::all_of(dims->begin(), dims->end(), keeps_channels);
  }

  // Sizes of a view with `wide` channels, given as literals at the end, with `width` in their place.
  [[nodiscard]] static std::optional<Arg> resized(const Arg& sizes, std::int64_t wide, std::int64_t width) {
    if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&sizes)) {
      std::vector<std::int64_t> out = *numbers;
      if (out.empty() || (out.back() != wide && out.back() != -1)) return std::nullopt;
      if (out.back() == wide) out.back() = width;
      return Arg(out);
    }
    if (const auto* mixed = std::get_if<std::vector<Size>>(&sizes)) {
      std::vector<Size> out = *mixed;
      if (out.empty() || out.back().value != kNoValue || (out.back().number != wide && out.back().number != -1)) {
        return std::nullopt;
      }
      if (out.back().number == wide) out.back().number = width;
      return Arg(out);
    }
    return std::nullopt;
  }

  void add(Node node, int index) {
    out_.nodes.push_back(std::move(node));
    new_index_.push_back(index);
  }

  ValueId value_like(ValueId id, std::int64_t channel_dim, std::int64_t width) {
    Value value = in_.values[static_cast<std::size_t>(id)];
    if (channel_dim >= 0) value.shape.at(static_cast<std::size_t>(channel_dim)) = width;
    out_.values.push_back(std::move(value));
    return static_cast<ValueId>(out_.values.size()) - 1;
  }

  // Rows [begin, begin + width) of a layer's weight or statistics.
  ValueId rows_of(ValueId id, std::int64_t begin, std::int64_t width, const Node& where, int index) {
    const ValueId part = value_like(id, 0, width);
    Node slice = where;
    slice.op = "aten::slice.Tensor";
    slice.args = {id, std::int64_t{0}, begin, begin + width, std::int64_t{1}};
    slice.outputs = {part};
    add(std::move(slice), index);
    return part;
  }

  // One panel of the chain; its result.
  ValueId add_panel(const Chain& chain, std::int64_t begin, std::int64_t width) {
    const std::int64_t wide = channels(chain);
    ValueId value = kNoValue;
    for (const std::size_t position : chain) {
      Node node = in_.nodes[position];
      const int index = index_[position];
      const bool layer = node.op == "aten::linear" || node.op == "aten::batch_norm";
      for (std::size_t a = 1; layer && a < node.args.size(); ++a) {
        if (auto* id = std::get_if<ValueId>(&node.args[a])) *id = rows_of(*id, begin, width, node, index);
      }
      if (value != kNoValue) node.args[0] = value;
      if (node.op == "aten::view" || node.op == "aten::reshape") node.args[1] = *resized(node.args[1], wide, width);
      for (ValueId& output : node.outputs) {
        if (output == kNoValue) continue;
        const auto rank = static_cast<std::int64_t>(shape(output).size());
        output = value_like(output, rank - 1, width);
      }
      value = node.outputs.front();
      add(std::move(node), index);
    }
    return value;
  }

  void add_panels(const Chain& chain) {
    const Node& last = in_.nodes[chain.back()];
    const Shape& y = shape(in_.nodes[chain.front()].outputs.front());
    const std::int64_t wide = y.back(), rows = elements_of(y, n_) / wide;
    const std::int64_t bytes = size_of(in_.values[static_cast<std::size_t>(last.outputs.front())].dtype);
    const std::int64_t width = panel(rows, bytes);
    std::vector<ValueId> parts;
    for (std::int64_t begin = 0; begin < wide; begin += width) {
      parts.push_back(add_panel(chain, begin, std::min(width, wide - begin)));
    }
    Node joined = last;
    joined.op = "aten::cat";
    joined.args = {parts, static_cast<std::int64_t>(shape(last.outputs.front()).size()) - 1};
    joined.outputs = {last.outputs.front()};
    add(std::move(joined), index_[chain.back()]);
  }

  const Graph& in_;
  std::vector<int>& index_;
  std::int64_t n_;
  std::vector<std::vector<std::size_t>> readers_;
  Graph out_;
  std::vector<int> new_index_;
};

}  // namespace

Graph in_panels(const Graph& graph, std::vector<int>& index, std::int64_t n) { return Cutter(graph, index, n).run(); }

}  // namespace hfta::fusion::cpu
