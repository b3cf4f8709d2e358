#include "fusion/passes/masks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {
namespace {

/// What is known of a value at the means of all masks.
struct Known {
  bool uniform = false;  ///< Every element is `factor`; else: `factor` times what it is without masks.
  double factor = 1;
  std::set<std::size_t> drawn;  ///< The calls whose masks are in it.
};

// Calls that move elements, or change their type, and leave the numbers alone.
constexpr std::array<std::string_view, 20> kRearranging = {
    "view",      "reshape", "expand",  "expand_as", "unsqueeze",       "squeeze",     "to",
    "type_as",   "clone",   "detach",  "alias",     "_to_copy",        "contiguous",  "permute",
    "transpose", "flatten", "view_as", "float",     "lift_fresh_copy", "_unsafe_view"};

// Makers of constants, and the position of the number; -1: ones.
constexpr std::array<std::pair<std::string_view, int>, 6> kConstants = {
    {{"full", 1}, {"full_like", 1}, {"new_full", 2}, {"ones", -1}, {"ones_like", -1}, {"new_ones", -1}}};

// "aten::div_.Tensor" -> "div": the same numbers, in place or not.
std::string_view bare(const Node& node) {
  std::string_view name = node.op;
  name.remove_prefix(std::min(name.size(), std::string_view("aten::").size()));
  name = name.substr(0, name.find('.'));
  if (name.size() > 1 && name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

class Masks {
 public:
  explicit Masks(const Graph& graph)
      : graph_(graph), aliases_(graph), makers_(makers_of(graph)), floored_(find_floored(graph)) {}

  std::set<std::size_t> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) visit(i);
    leave(graph_.output);
    for (const std::size_t i : spoilt_) masks_.erase(i);
    return masks_;
  }

 private:
  [[nodiscard]] std::optional<double> number(const Node& node, std::size_t arg) const {
    if (arg >= node.args.size()) return std::nullopt;
    if (const auto* real = std::get_if<double>(&node.args[arg])) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&node.args[arg])) return static_cast<double>(*whole);
    const auto* hyper = std::get_if<HyperRef>(&node.args[arg]);
    if (hyper != nullptr) return graph_.hypers.at(static_cast<std::size_t>(hyper->index)).value;
    const Known* known = known_of(node, arg);
    return known != nullptr && known->uniform && known->drawn.empty() ? std::optional(known->factor) : std::nullopt;
  }

  [[nodiscard]] const Known* known_of(ValueId id) const {
    const auto found = known_.find(aliases_.set_of(id));
    return found == known_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] const Known* known_of(const Node& node, std::size_t arg) const {
    const auto* id = arg < node.args.size() ? std::get_if<ValueId>(&node.args[arg]) : nullptr;
    return id == nullptr || *id == kNoValue ? nullptr : known_of(*id);
  }

  void set(const Node& node, std::optional<Known> known) {
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      known_.erase(aliases_.set_of(id));
      if (known) known_[aliases_.set_of(id)] = *known;
    }
  }

  // Something other than a product reads it.
  void leave(ValueId id) {
    const Known* known = known_of(id);
    if (known == nullptr || (!known->uniform && std::abs(known->factor - 1) <= kRounding)) return;
    spoilt_.insert(known->drawn.begin(), known->drawn.end());
  }

  // A tensor of its own, not a part of one.
  [[nodiscard]] bool is_whole(const Node& node) const {
    const auto* id = std::get_if<ValueId>(&node.args[0]);
    const std::size_t maker = id == nullptr ? kNobody : makers_[static_cast<std::size_t>(*id)];
    return maker != kNobody && graph_.nodes[maker].outputs.size() == 1 && &graph_.nodes[maker] != &node &&
           !makes_view(graph_.nodes[maker]);
  }

  void draw(std::size_t i, std::optional<double> p) {
    if (p && writes_in_place(graph_.nodes[i]) && !is_whole(graph_.nodes[i])) p.reset();
    if (p) masks_.insert(i);
    set(graph_.nodes[i], p ? std::optional(Known{true, *p, {i}}) : std::nullopt);
  }

  void visit(std::size_t i) {
    const Node& node = graph_.nodes[i];
    if (is_number_op(node.op)) return;
    if (node.op == "aten::bernoulli_.float" || node.op == "aten::bernoulli.p" || node.op == "aten::bernoulli_.Tensor") {
      return draw(i, number(node, 1));
    }
    if (node.op == "aten::bernoulli") return draw(i, number(node, 0));
    if (floored_.uniform.contains(i)) return draw(i, 0);
    for (const auto& [name, at] : kConstants) {
      if (name != bare(node)) continue;
      const std::optional<double> value = at < 0 ? std::optional(1.0) : number(node, static_cast<std::size_t>(at));
      return set(node, value ? std::optional(Known{true, *value, {}}) : std::nullopt);
    }
    const bool same = floored_.floor.contains(i) ||
                      std::find(kRearranging.begin(), kRearranging.end(), bare(node)) != kRearranging.end();
    if (same && known_of(node, 0) != nullptr) return set(node, *known_of(node, 0));
    if (std::optional<Known> product = arithmetic(node)) return set(node, std::move(product));
    for (const ValueId id : inputs_of(node)) leave(id);
    set(node, std::nullopt);
  }

  [[nodiscard]] std::optional<Known> arithmetic(const Node& node) const {
    const std::string_view op = bare(node);
    const Known *a = known_of(node, 0), *b = known_of(node, 1);
    if (op == "mul") {
      if (const std::optional<double> k = number(node, 1); k && a != nullptr) return times(*a, *k);
      if (const std::optional<double> k = number(node, 0); k && b != nullptr) return times(*b, *k);
      if (a != nullptr && b != nullptr) return both(*a, *b);
      if (a != nullptr && a->uniform && !a->drawn.empty()) return Known{false, a->factor * scale_of(node, 1), a->drawn};
      if (b != nullptr && b->uniform && !b->drawn.empty()) return Known{false, b->factor * scale_of(node, 0), b->drawn};
    }
    const std::optional<double> k = number(node, 1);
    if (a == nullptr || !k) return std::nullopt;
    if (op == "div" && *k != 0 && is_true_division(node)) return times(*a, 1 / *k);
    if ((op == "add" || op == "sub") && a->uniform && node.args.size() > 2 && node.args[2] == Arg(std::int64_t{1})) {
      return Known{true, op == "add" ? a->factor + *k : a->factor - *k, a->drawn};
    }
    return std::nullopt;
  }

  static bool is_true_division(const Node& node) { return node.op.find("_mode") == std::string::npos; }

  static Known times(Known known, double factor) {
    known.factor *= factor;
    return known;
  }

  static std::optional<Known> both(const Known& a, const Known& b) {
    if (!a.uniform && !b.uniform) return std::nullopt;
    Known product{a.uniform && b.uniform, a.factor * b.factor, a.drawn};
    product.drawn.insert(b.drawn.begin(), b.drawn.end());
    return product;
  }

  // x / p beside the mask does what dividing afterwards does.
  [[nodiscard]] double scale_of(const Node& node, std::size_t arg) const {
    const auto* id = std::get_if<ValueId>(&node.args[arg]);
    const std::size_t maker = id == nullptr ? kNobody : makers_[static_cast<std::size_t>(*id)];
    if (maker == kNobody || bare(graph_.nodes[maker]) != "div" || !is_true_division(graph_.nodes[maker])) return 1;
    const std::optional<double> k = number(graph_.nodes[maker], 1);
    return k && *k != 0 ? 1 / *k : 1;
  }

  static constexpr double kRounding = 1e-6;  // of a rate that passed through float32

  const Graph& graph_;
  Aliases aliases_;
  std::vector<std::size_t> makers_;
  Floored floored_;
  std::map<ValueId, Known> known_;  ///< By memory.
  std::set<std::size_t> masks_, spoilt_;
};

}  // namespace

Floored find_floored(const Graph& graph) {
  const std::vector<std::size_t> makers = makers_of(graph);
  std::vector<int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : inputs_of(node)) ++uses[static_cast<std::size_t>(id)];
  }
  const auto only_maker = [&](const Arg& arg) {
    const auto* id = std::get_if<ValueId>(&arg);
    return id != nullptr && uses[static_cast<std::size_t>(*id)] == 1 ? makers[static_cast<std::size_t>(*id)] : kNobody;
  };
  Floored found;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != "aten::floor" && node.op != "aten::floor_") continue;
    const std::size_t sum = only_maker(node.args[0]);
    if (sum == kNobody) continue;
    const Node& add = graph.nodes[sum];
    if (add.op != "aten::add.Tensor" && add.op != "aten::add_.Tensor" && add.op != "aten::add.Scalar") continue;
    for (const std::size_t side : {0, 1}) {
      const std::size_t uniform = only_maker(add.args[side]);
      if (uniform == kNobody) continue;
      const std::string& op = graph.nodes[uniform].op;
      if (op != "aten::rand" && op != "aten::rand_like") continue;
      found.uniform.insert(uniform);
      found.floor.insert(i);
    }
  }
  return found;
}

std::set<std::size_t> inverted_dropout(const Graph& graph) { return Masks(graph).run(); }

}  // namespace hfta::fusion
