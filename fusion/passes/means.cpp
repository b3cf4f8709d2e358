#include <optional>

#include "fusion/passes/calls.hpp"
#include "fusion/passes/masks.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

std::optional<double> number_in(const Arg* arg) {
  if (arg == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(arg)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(arg)) return static_cast<double>(*whole);
  return std::nullopt;
}

// The middle of a uniform tensor's range; nothing: a bound is no literal.
std::optional<Arg> middle(const Node& node) {
  const Arg *from = find_argument(node, "from"), *to = find_argument(node, "to");
  if (from == nullptr || to == nullptr) return Arg(0.5);
  const std::optional<double> low = number_in(from), high = number_in(to);
  return low && high ? std::optional<Arg>((*low + *high) / 2) : std::nullopt;
}

std::optional<Arg> mean_of(const Node& node, Draws draws) {
  switch (draws) {
    case Draws::kBernoulli: {
      const Arg* p = find_argument(node, "p");
      return *(p != nullptr ? p : &argument_of(node, "self"));
    }
    case Draws::kUniform:
      return middle(node);
    case Draws::kNormal: {
      const Arg* mean = find_argument(node, "mean");
      return mean != nullptr ? *mean : Arg(0.0);
    }
    case Draws::kExponential: {
      const std::optional<double> rate = number_in(find_argument(node, "lambd"));
      return rate ? std::optional<Arg>(1 / *rate) : std::nullopt;
    }
    case Draws::kNothing:
    case Draws::kNoise:
    case Draws::kOther:
      break;
  }
  return std::nullopt;
}

// The call with `mean` in every element of what it gives; nothing: of a tensor of means that is not of its sizes.
std::optional<Node> filled(const Graph& graph, const Node& node, const Arg& mean) {
  const auto* id = std::get_if<ValueId>(&mean);
  const bool tensor = id != nullptr && !graph.values[static_cast<std::size_t>(*id)].number;
  const Arg *self = find_argument(node, "self"), *size = find_argument(node, "size");
  if (traits_of(node).in_place) {
    return tensor ? call::copied_into(node, *self, mean) : call::filled_in_place(node, *self, mean);
  }
  if (tensor) return self != nullptr && *self == mean ? std::optional(call::cloned(node, mean)) : std::nullopt;
  if (size != nullptr) return call::full(node, *size, mean);
  return self != nullptr ? std::optional(call::full_like(node, *self, mean)) : std::nullopt;
}

std::optional<Node> at_mean(const Graph& graph, const Node& node, bool floored) {
  if (is_number_op(node.op) || traits_of(node).evaluation != Evaluation::kMean) return std::nullopt;
  std::optional<Arg> mean = floored ? Arg(0.0) : mean_of(node, traits_of(node).draws);
  const ValueId made = node.outputs.empty() ? kNoValue : node.outputs[0];
  const bool complex = made != kNoValue && is_complex(graph.values[static_cast<std::size_t>(made)].dtype);
  const auto* number = complex && mean && !traits_of(node).in_place ? std::get_if<double>(&*mean) : nullptr;
  if (number != nullptr) mean = Arg(Complex{*number, *number});  // the mean of both parts
  return mean ? filled(graph, node, *mean) : std::nullopt;
}

}  // namespace

SpecializedGraph with_means(SpecializedGraph reading) {
  const Floored floored = find_floored(reading.graph);
  Substitution out(std::move(reading));
  for (std::size_t i = 0; i < out.count(); ++i) {
    Node node = out.take(i);
    if (floored.floor.contains(i)) {
      out.stand_for(node, argument_of(node, "self"));
      continue;
    }
    std::optional<Node> mean = at_mean(out.graph(), node, floored.uniform.contains(i));
    out.add(mean ? std::move(*mean) : std::move(node), i);
  }
  return std::move(out).result();
}

}  // namespace hfta::fusion
