#include <algorithm>
#include <optional>
#include <utility>

#include "fusion/graph/broadcast.hpp"
#include "fusion/passes/calls.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

// Least channels of a repeated part: with fewer, the pass that adds it costs more than its product.
constexpr std::int64_t kFewestChannels = 16;

// Channels of a concatenation that go through one product.
struct Part {
  std::vector<ValueId> values;  // joined in this order
  std::int64_t channels = 0;
  bool repeated = false;  // `values` is the one thing that was
};

bool all_are(const Arg& arg, std::int64_t wanted) {
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&arg);
  return numbers != nullptr && std::all_of(numbers->begin(), numbers->end(), [&](auto n) { return n == wanted; });
}

bool repeats(const Node& node) { return !is_number_op(node.op) && traits_of(node).elements == Elements::kRepeated; }

class Splitter {
 public:
  explicit Splitter(SpecializedGraph reading)
      : in_(std::move(reading)), makers_(makers_of(in_.graph)), values_(in_.graph.values) {}

  SpecializedGraph run() {
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      const std::vector<Part> parts = parts_of(i);
      if (parts.empty()) {
        add(nodes()[i], in_.index[i]);
      } else {
        add_sum(i, parts);
      }
    }
    in_.graph.nodes = std::move(out_);
    in_.graph.values = std::move(values_);
    return {std::move(in_.graph), std::move(index_)};
  }

 private:
  [[nodiscard]] const std::vector<Node>& nodes() const { return in_.graph.nodes; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Shape& shape(ValueId id) const { return value(id).shape; }
  [[nodiscard]] std::size_t maker(ValueId id) const { return makers_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Node* made_by(ValueId id) const { return maker(id) == kNobody ? nullptr : &nodes()[maker(id)]; }

  // How many dimensions before the end of the input the channels are that the node sums over; 0: it is no such product.
  // They are dimension 1 of its weight.
  [[nodiscard]] std::size_t channels_from_end(const Node& node) const {
    if (is_call_of(node, "linear")) {  // a file's word for sizes may be wrong
      const bool product = shape(argument_of<ValueId>(node, "weight")).size() == 2;
      return product && !shape(argument_of<ValueId>(node, "input")).empty() ? 1 : 0;
    }
    if (!is_call_of(node, "conv1d") && !is_call_of(node, "conv2d") && !is_call_of(node, "conv3d")) return 0;
    const Shape& weight = shape(argument_of<ValueId>(node, "weight"));
    if (weight.size() < 3) return 0;
    const bool pointwise = std::all_of(weight.begin() + 2, weight.end(), [](auto n) { return n == 1; }) &&
                           all_are(argument_of(node, "stride"), 1) && all_are(argument_of(node, "padding"), 0) &&
                           argument_of(node, "groups") == Arg(std::int64_t{1});
    const bool batched = shape(argument_of<ValueId>(node, "input")).size() == weight.size();
    return pointwise && batched ? weight.size() - 1 : 0;
  }

  // Whether the value reads the same at both positions.
  [[nodiscard]] bool untouched(ValueId id, std::size_t from, std::size_t to) const {
    MemorySets own(in_.graph);
    own.mark(id);
    return std::none_of(nodes().begin() + static_cast<std::ptrdiff_t>(from) + 1,
                        nodes().begin() + static_cast<std::ptrdiff_t>(to),
                        [&](const Node& node) { return own.any(written_by(node)); });
  }

  // The value that `id` repeats, if its channels are not repeated and splitting pays for the product.
  [[nodiscard]] std::optional<ValueId> source_of(ValueId id, std::size_t channels, const Node& product) const {
    const Node* repetition = made_by(id);
    if (repetition == nullptr || !repeats(*repetition)) return std::nullopt;
    if (repetition->no_gradient != product.no_gradient) return std::nullopt;
    const bool same_rank = !is_call_of(product, "linear");
    const ValueId source = argument_of<ValueId>(*repetition, "self");
    const Shape &small = shape(source), &large = shape(id);
    if (small.size() < channels || small.size() > large.size() || (same_rank && small.size() != large.size()))
      return std::nullopt;
    if (small[small.size() - channels] < kFewestChannels) return std::nullopt;
    for (std::size_t d = 1; d <= small.size(); ++d) {
      const std::int64_t from = small[small.size() - d], to = large[large.size() - d];
      if (from != to && (from != 1 || d == channels)) return std::nullopt;
    }
    constexpr std::int64_t kSomeBatch = 64;
    return elements_of(large, kSomeBatch) > elements_of(small, kSomeBatch) ? std::optional(source) : std::nullopt;
  }

  // The parts that the product at `i` is split into; none if it stays whole.
  [[nodiscard]] std::vector<Part> parts_of(std::size_t i) const {
    const Node& node = nodes()[i];
    const std::size_t channels = channels_from_end(node);
    if (channels == 0) return {};
    const ValueId x = argument_of<ValueId>(node, "input");
    const Node* joined = made_by(x);
    if (joined == nullptr || !is_call_of(*joined, "cat") || joined->no_gradient != node.no_gradient) return {};
    const auto rank = static_cast<std::int64_t>(shape(x).size());
    const std::int64_t dim = argument_of<std::int64_t>(*joined, "dim"),
                       summed = rank - static_cast<std::int64_t>(channels);
    if (dim != summed && dim != summed - rank) return {};
    const auto& joined_values = argument_of<std::vector<ValueId>>(*joined, "tensors");
    std::vector<std::optional<ValueId>> sources;
    for (const ValueId id : joined_values) {
      if (id == kNoValue || value(id).dtype != value(x).dtype || shape(id).size() != shape(x).size()) return {};
      sources.push_back(source_of(id, channels, node));
    }
    const bool some =
        std::any_of(sources.begin(), sources.end(), [](const auto& source) { return source.has_value(); });
    if (!some || !untouched(x, maker(x), i)) return {};
    return parts_of(i, joined_values, sources);
  }

  // The parts of the product at `i` of the values `joined`; `sources`: what each of them may repeat.
  [[nodiscard]] std::vector<Part> parts_of(std::size_t i, const std::vector<ValueId>& joined,
                                           const std::vector<std::optional<ValueId>>& sources) const {
    const std::size_t channels = channels_from_end(nodes()[i]);
    const ValueId x = argument_of<ValueId>(nodes()[i], "input");
    std::vector<Part> parts;
    for (std::size_t k = 0; k < joined.size(); ++k) {
      const ValueId id = joined[k];
      const bool repeated = sources[k] && untouched(*sources[k], maker(id), i) && untouched(id, maker(id), maker(x));
      if (!repeated && !untouched(id, maker(x), i)) return {};
      const std::int64_t width = shape(id)[shape(id).size() - channels];
      if (repeated || parts.empty() || parts.back().repeated) {
        parts.push_back({{repeated ? *sources[k] : id}, width, repeated});
      } else {
        parts.back().values.push_back(id);
        parts.back().channels += width;
      }
    }
    return worthwhile(parts, shape(x), channels) ? parts : std::vector<Part>();
  }

  // Whether something is repeated, and the sum has every dimension of the whole.
  [[nodiscard]] bool worthwhile(const std::vector<Part>& parts, const Shape& whole, std::size_t channels) const {
    if (std::none_of(parts.begin(), parts.end(), [](const Part& part) { return part.repeated; })) return false;
    for (std::size_t d = 1; d <= whole.size(); ++d) {
      const auto runs_through = [&](const Part& part) {
        const Shape& s = shape(part.values.front());
        return d <= s.size() && s[s.size() - d] == whole[whole.size() - d];
      };
      if (d != channels && std::none_of(parts.begin(), parts.end(), runs_through)) return false;
    }
    return parts.size() > 1;
  }

  void add(Node node, int index) {
    out_.push_back(std::move(node));
    index_.push_back(index);
  }

  // The output of one more call.
  ValueId add_call(Node call, int index, Shape shape) {
    const auto id = static_cast<ValueId>(values_.size());
    values_.push_back({call.path, std::move(shape), value(call.outputs[0]).dtype, false});
    call.outputs = {id};
    add(std::move(call), index);
    return id;
  }

  void add_sum(std::size_t i, const std::vector<Part>& parts) {
    const Node& node = nodes()[i];
    const int index = in_.index[i];
    const std::size_t channels = channels_from_end(node);
    const ValueId weight = argument_of<ValueId>(node, "weight");
    std::int64_t begin = 0;
    std::optional<ValueId> sum;
    bool biased = false;
    for (const Part& part : parts) {
      const std::int64_t end = begin + part.channels;
      Shape sizes = shape(weight);
      sizes[1] = part.channels;
      const ValueId columns = add_call(call::slice(node, weight, 1, begin, end), index, sizes);
      begin = end;
      sizes = shape(part.values.front());
      const std::size_t dim = sizes.size() - channels;
      sizes[dim] = part.channels;
      const ValueId x = part.values.size() == 1
                            ? part.values.front()
                            : add_call(call::cat(node, part.values, static_cast<std::int64_t>(dim)), index, sizes);
      Node product = node;
      argument_of(product, "input") = x;
      argument_of(product, "weight") = columns;
      // The bias once, where rows are few.
      if (!part.repeated || std::exchange(biased, true)) argument_of(product, "bias") = std::monostate();
      sizes[dim] = shape(weight)[0];
      const ValueId given = add_call(std::move(product), index, std::move(sizes));
      sum = sum ? add_call(call::add(node, *sum, given), index, broadcast(shape(*sum), shape(given)).value()) : given;
    }
    out_.back().outputs = node.outputs;
  }

  SpecializedGraph in_;
  std::vector<std::size_t> makers_;  // by value: position of the node
  std::vector<Value> values_;
  std::vector<Node> out_;
  std::vector<int> index_;
};

}  // namespace

SpecializedGraph with_split_products(SpecializedGraph reading) { return Splitter(std::move(reading)).run(); }

}  // namespace hfta::fusion
