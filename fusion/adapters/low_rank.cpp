#include "fusion/adapters/low_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/graph/place.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::adapters {
namespace {

/// A product of rows with a matrix: positions of its arguments.
struct Product {
  const char* op;
  std::size_t input, weight;
  bool turned;  ///< The matrix is [in, out].
};
constexpr std::size_t kBias = 2;  // position, of those that are not turned
constexpr std::array<Product, 8> kProducts = {{{"aten::linear", 0, 1, false},
                                               {"aten::conv1d", 0, 1, false},
                                               {"aten::conv1d.padding", 0, 1, false},
                                               {"aten::conv2d", 0, 1, false},
                                               {"aten::conv2d.padding", 0, 1, false},
                                               {"aten::matmul", 0, 1, true},
                                               {"aten::mm", 0, 1, true},
                                               {"aten::embedding", 1, 0, true}}};

template <std::size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, const std::string& op) {
  return std::find(names.begin(), names.end(), base_name(op)) != names.end();
}
constexpr std::array<std::string_view, 7> kCopies = {"to",      "_to_copy", "clone", "contiguous",
                                                     "type_as", "alias",    "detach"};
constexpr std::array<std::string_view, 7> kSameRows = {"view",      "reshape", "_unsafe_view",   "flatten",
                                                       "unflatten", "dropout", "feature_dropout"};
constexpr std::array<std::string_view, 6> kTurns = {"t", "transpose", "numpy_T", "mT", "swapaxes", "swapdims"};

bool keeps_rows(const std::string& op) { return is_one_of(kCopies, op) || is_one_of(kSameRows, op); }

ValueId value_at(const Node& node, std::size_t place) {
  const auto* id = place < node.args.size() ? std::get_if<ValueId>(&node.args[place]) : nullptr;
  return id == nullptr ? kNoValue : *id;
}

class Finder {
 public:
  Finder(const Graph& graph, std::string layer) : graph_(graph), layer_(std::move(layer)), makers_(makers_of(graph)) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId id : inputs_of(graph.nodes[n])) readers_[id].push_back(n);
    }
    for (const LayerCall& call : adapted_calls(graph)) {
      if (call.module == layer_) calls_.push_back(call);
    }
  }

  [[nodiscard]] LowRank find(const std::string& a, const std::string& b) {
    b_ = products_with(b);
    const std::map<std::size_t, const Product*> first = products_with(a);
    if (first.size() != calls_.size() || b_.size() != calls_.size()) {
      fail(fmt::format("'{}' is multiplied {} times and '{}' {} times, where the layer is called {} times",
                       printable(a), first.size(), printable(b), b_.size(), calls_.size()));
    }
    std::optional<double> found;
    for (const auto& [node, product] : first) {
      const double one = scale_of(node, *product);
      if (found && *found != one) fail("its calls have numbers of their own");
      found = one;
    }
    return {found.value_or(1), pads_apart_};
  }

 private:
  struct Source {
    ValueId value = kNoValue;
    double factor = 1;
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::kConfig,
                fmt::format("'{}': found an adapter that is no W x + s B A x with a number s, wanted such a one: {}",
                            printable(layer_), why));
  }
  [[noreturn]] void fail(std::size_t node) const { fail("at " + place_of(graph_.nodes[node])); }

  // By node: the products with the weight, or with its transpose where they want that.
  std::map<std::size_t, const Product*> products_with(const std::string& name) const {
    std::map<ValueId, bool> turned;  // values that are the weight
    for (const Weight& weight : graph_.weights) {
      if (weight.name == name) turned[weight.value] = false;
    }
    std::map<std::size_t, const Product*> products;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const std::vector<ValueId> inputs = inputs_of(node);
      const auto reads = std::find_if(inputs.begin(), inputs.end(), [&](ValueId id) { return turned.contains(id); });
      if (reads == inputs.end()) continue;
      const bool is_turned = turned.at(*reads), turns = is_one_of(kTurns, node.op);
      if ((is_one_of(kCopies, node.op) || turns) && value_at(node, 0) == *reads) {
        turned[node.outputs.at(0)] = is_turned != turns;
        continue;
      }
      const auto product = std::find_if(kProducts.begin(), kProducts.end(), [&](const Product& one) {
        return one.op == node.op && value_at(node, one.weight) == *reads && one.turned == is_turned;
      });
      if (product == kProducts.end()) fail(n);
      if (!product->turned && value_at(node, kBias) != kNoValue) fail(n);
      products[n] = &*product;
    }
    return products;
  }

  // The number that the call multiplies its first argument by.
  [[nodiscard]] std::optional<double> factor_of(const Node& node) const {
    const std::string_view name = base_name(node.op);
    if ((name != "mul" && name != "div") || node.args.size() != 2) return std::nullopt;
    const std::optional<double> number = number_in(graph_, node.args[1]);
    return name == "div" && number ? 1 / *number : number;
  }

  // What the value is made of, but for numbers that it was multiplied by. `alone`: nobody else may read what is passed.
  [[nodiscard]] Source source_of(ValueId value, bool alone) const {
    Source source{value, 1};
    while (true) {
      if (alone && readers_.at(source.value).size() > 1) fail(readers_.at(source.value).back());
      const std::size_t maker = makers_[static_cast<std::size_t>(source.value)];
      if (maker == kNobody) return source;
      const Node& node = graph_.nodes[maker];
      const std::optional<double> factor = factor_of(node);
      if ((!factor && !keeps_rows(node.op)) || value_at(node, 0) == kNoValue) return source;
      source = {value_at(node, 0), source.factor * factor.value_or(1)};
    }
  }

  // From A's product to the sum with what the layer's own call gives.
  [[nodiscard]] double scale_of(std::size_t node, const Product& product) {
    const Source input = source_of(value_at(graph_.nodes[node], product.input), false);
    double scale = input.factor;
    ValueId value = graph_.nodes[node].outputs.at(0);
    bool behind_b = false;
    while (true) {
      const auto readers = readers_.find(value);
      const bool given = std::count(graph_.outputs.begin(), graph_.outputs.end(), value) > 0;
      if (given || readers == readers_.end() || readers->second.size() != 1) fail(node);
      const std::size_t next = readers->second.front();
      const Node& reader = graph_.nodes[next];
      const std::optional<double> factor = factor_of(reader);
      if (behind_b && base_name(reader.op) == "add") return scale * check_sum(reader, next, value, node, input);
      const auto b = b_.find(next);
      const bool by_b = !behind_b && b != b_.end() && value_at(reader, b->second->input) == value;
      if (!by_b && ((!factor && !keeps_rows(reader.op)) || value_at(reader, 0) != value)) fail(next);
      behind_b |= by_b;
      scale *= factor.value_or(1);
      value = reader.outputs.at(0);
    }
  }

  // `value` is added to the layer's own output of the same input. Returns the number that the sum multiplies it by.
  [[nodiscard]] double check_sum(const Node& sum, std::size_t at, ValueId value, std::size_t a, const Source& input) {
    const bool second = value_at(sum, 1) == value;
    const Arg* alpha = argument(sum, "alpha");
    if (alpha != nullptr && (!number_in(graph_, *alpha) || std::holds_alternative<HyperRef>(*alpha))) fail(at);
    const double factor = alpha == nullptr ? 1 : *number_in(graph_, *alpha);
    const ValueId own = value_at(sum, second ? 0 : 1);
    if (own == kNoValue || (!second && factor != 1)) fail(at);
    const Source layer = source_of(own, true);
    const auto call = std::find_if(calls_.begin(), calls_.end(), [&](const LayerCall& one) {
      return graph_.nodes[one.node].outputs.at(0) == layer.value;
    });
    if (call == calls_.end() || layer.factor != 1) fail(at);
    const Source fed = source_of(call->input, false);
    const bool pads = is_padded(fed.value, input.value);
    if (!pads && (fed.value != input.value || !moves_alike(graph_.nodes[call->node], graph_.nodes[a]))) fail(a);
    pads_apart_ |= pads;
    return factor / fed.factor;
  }

  [[nodiscard]] bool is_padded(ValueId value, ValueId input) const {
    const std::size_t maker = makers_[static_cast<std::size_t>(value)];
    if (maker == kNobody || base_name(graph_.nodes[maker].op) != "pad") return false;
    return source_of(value_at(graph_.nodes[maker], 0), false).value == input;
  }

  // Whether a convolution's A reads the places that the layer reads.
  static bool moves_alike(const Node& layer, const Node& a) {
    constexpr std::array<const char*, 3> kPlaces = {"stride", "padding", "dilation"};
    if (!base_name(a.op).starts_with("conv")) return true;
    return std::all_of(kPlaces.begin(), kPlaces.end(), [&](const char* name) {
      const Arg *one = argument(layer, name), *other = argument(a, name);
      return one == nullptr || other == nullptr ? one == other : *one == *other;
    });
  }

  const Graph& graph_;
  std::string layer_;
  std::vector<std::size_t> makers_;
  std::map<ValueId, std::vector<std::size_t>> readers_;
  std::vector<LayerCall> calls_;
  std::map<std::size_t, const Product*> b_;
  bool pads_apart_ = false;
};

}  // namespace

std::optional<double> number_in(const Graph& graph, const Arg& arg) {
  if (const auto* real = std::get_if<double>(&arg)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&arg)) return static_cast<double>(*whole);
  const auto* hyper = std::get_if<HyperRef>(&arg);
  if (hyper == nullptr) return std::nullopt;
  return graph.hypers.at(static_cast<std::size_t>(hyper->index)).value;
}

LowRank low_rank(const Graph& graph, const std::string& layer, const std::string& a, const std::string& b) {
  return Finder(graph, layer).find(a, b);
}

}  // namespace hfta::fusion::adapters
