#include "fusion/passes/masks.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "fusion/passes/calls.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

/// Facts about a value at the means of all masks.
struct Known {
  bool uniform = false;  ///< Every element is `factor`; else: `factor` times what it is without masks.
  double factor = 1;
  std::set<std::size_t> drawn;  ///< The calls whose masks are in it.
};

class Masks {
 public:
  explicit Masks(const Graph& graph)
      : graph_(graph), aliases_(graph), makers_(makers_of(graph)), floored_(find_floored(graph)) {}

  std::set<std::size_t> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) visit(i);
    for (const ValueId id : graph_.outputs) leave(id);
    for (const std::size_t i : spoilt_) masks_.erase(i);
    return masks_;
  }

 private:
  // The number that every element of the argument is known to be; nothing: it is not known, or there is no argument.
  [[nodiscard]] std::optional<double> number(const Arg* arg) const {
    if (arg == nullptr) return std::nullopt;
    if (const auto* real = std::get_if<double>(arg)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(arg)) return static_cast<double>(*whole);
    const auto* hyper = std::get_if<HyperRef>(arg);
    if (hyper != nullptr) return graph_.hypers.at(static_cast<std::size_t>(hyper->index)).value;
    const Known* known = known_of(arg);
    return known != nullptr && known->uniform && known->drawn.empty() ? std::optional(known->factor) : std::nullopt;
  }

  [[nodiscard]] const Known* known_of(ValueId id) const {
    const auto found = known_.find(aliases_.set_of(id));
    return found == known_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] const Known* known_of(const Arg* arg) const {
    const auto* id = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
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
    const auto* id = std::get_if<ValueId>(&argument_of(node, "self"));
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
    const OpTraits& op = traits_of(node);
    if (op.draws == Draws::kBernoulli) {
      const Arg* p = find_argument(node, op.rate);
      return draw(i, number(p != nullptr ? p : &argument_of(node, "self")));
    }
    if (floored_.uniform.contains(i)) return draw(i, 0);
    if (op.constant || !op.constant_of.empty()) {
      const std::optional<double> value = op.constant ? op.constant : number(find_argument(node, op.constant_of));
      return set(node, value ? std::optional(Known{true, *value, {}}) : std::nullopt);
    }
    const bool same = floored_.floor.contains(i) || op.elements != Elements::kComputed;
    const Known* first = node.args.empty() ? nullptr : known_of(&node.args[0]);
    if (same && first != nullptr) return set(node, Known(*first));
    if (std::optional<Known> product = arithmetic(node)) return set(node, std::move(product));
    for (const ValueId id : inputs_of(node)) leave(id);
    set(node, std::nullopt);
  }

  [[nodiscard]] std::optional<Known> arithmetic(const Node& node) const {
    const bool add = is_call_of(node, "add"), sub = is_call_of(node, "sub");
    if (is_call_of(node, "mul")) return product(node);
    if (!add && !sub && !is_call_of(node, "div")) return std::nullopt;
    const Known* a = known_of(&argument_of(node, "self"));
    const std::optional<double> k = number(&argument_of(node, "other"));
    if (a == nullptr || !k) return std::nullopt;
    if (!add && !sub) return *k != 0 && is_true_division(node) ? std::optional(times(*a, 1 / *k)) : std::nullopt;
    if (!a->uniform || argument_of(node, "alpha") != Arg(std::int64_t{1})) return std::nullopt;
    return Known{true, add ? a->factor + *k : a->factor - *k, a->drawn};
  }

  [[nodiscard]] std::optional<Known> product(const Node& node) const {
    const Arg &self = argument_of(node, "self"), &other = argument_of(node, "other");
    const Known *a = known_of(&self), *b = known_of(&other);
    if (const std::optional<double> k = number(&other); k && a != nullptr) return times(*a, *k);
    if (const std::optional<double> k = number(&self); k && b != nullptr) return times(*b, *k);
    if (a != nullptr && b != nullptr) return both(*a, *b);
    if (a != nullptr && a->uniform && !a->drawn.empty()) return Known{false, a->factor * scale_of(other), a->drawn};
    if (b != nullptr && b->uniform && !b->drawn.empty()) return Known{false, b->factor * scale_of(self), b->drawn};
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
  [[nodiscard]] double scale_of(const Arg& arg) const {
    const auto* id = std::get_if<ValueId>(&arg);
    const std::size_t maker = id == nullptr ? kNobody : makers_[static_cast<std::size_t>(*id)];
    if (maker == kNobody || !is_call_of(graph_.nodes[maker], "div") || !is_true_division(graph_.nodes[maker])) return 1;
    const std::optional<double> k = number(&argument_of(graph_.nodes[maker], "other"));
    return k && *k != 0 ? 1 / *k : 1;
  }

  static constexpr double kRounding = 1e-6;  // relative error of a rate that passed through float32

  const Graph& graph_;
  Aliases aliases_;
  std::vector<std::size_t> makers_;
  Floored floored_;
  std::map<ValueId, Known> known_;  ///< By memory.
  std::set<std::size_t> masks_, spoilt_;
};

// Whether the numbers are from 0 to 1, in a tensor of their own.
bool is_unit_uniform(const Node& node) {
  return !is_number_op(node.op) && traits_of(node).draws == Draws::kUniform && find_argument(node, "from") == nullptr;
}

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
    if (!is_call_of(graph.nodes[i], "floor")) continue;
    const std::size_t sum = only_maker(argument_of(graph.nodes[i], "self"));
    if (sum == kNobody || !is_call_of(graph.nodes[sum], "add")) continue;
    for (const char* side : {"self", "other"}) {
      const std::size_t uniform = only_maker(argument_of(graph.nodes[sum], side));
      if (uniform == kNobody || !is_unit_uniform(graph.nodes[uniform])) continue;
      found.uniform.insert(uniform);
      found.floor.insert(i);
    }
  }
  return found;
}

std::set<std::size_t> inverted_dropout(const Graph& graph) { return Masks(graph).run(); }

}  // namespace hfta::fusion
