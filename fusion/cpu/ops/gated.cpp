// An activation that is only multiplied with something, as in SwiGLU and GeGLU: one kernel, at the product.
#include "fusion/cpu/kernels/gated.hpp"

#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

// The other factor of a product of two values of equal shape and type; kNoValue if it is none.
ValueId other_factor(const Graph& graph, const Node& product, ValueId value) {
  if (product.op != "aten::mul.Tensor") return kNoValue;
  const auto* first = argument_if<ValueId>(product, 0);
  const auto* second = argument_if<ValueId>(product, 1);
  if (first == nullptr || second == nullptr || *first == *second) return kNoValue;
  const ValueId other = *first == value ? *second : *first;
  const Value &own = graph.values[static_cast<std::size_t>(value)],
              &its = graph.values[static_cast<std::size_t>(other)];
  return !its.number && its.shape == own.shape && its.dtype == own.dtype ? other : kNoValue;
}

// Whether this is an activation that only a product reads: that product.
std::optional<std::size_t> only_product(const LoweringContext& site) {
  if (site.node().no_gradient || site.b.apart(site.position()) || !costly_activation(site)) return std::nullopt;
  const auto reader = site.b.only_reader(site.output());
  if (!reader) return std::nullopt;
  const bool product = other_factor(site.b.graph(), site.b.graph().nodes[*reader], site.output()) != kNoValue;
  return product ? reader : std::nullopt;
}

struct Gated {
  Unary op;
  Tensor x, gate, y;
};

template <typename T>
void emit_gated(Builder& b, const Gated& g) {
  const std::int64_t n = g.y.numel();
  const auto kernel = [=](const Run& run) {
    gate(run.team, g.op, run.at<T>(g.x), run.at<T>(g.gate), run.at<T>(g.y), n);
  };
  b.emit({g.x, g.gate, g.y}, kernel);
  b.recomputable(g.y, {g.x, g.gate, g.y}, kernel, RecomputeCost::kPass);
  b.differentiable({g.x, g.gate}, {g.y}, [&b, g, n] {
    const auto given = b.gradient(g.y);
    if (!given) return;
    const Builder::Part dx = b.contribute_if_wanted(g.x), dgate = b.contribute_if_wanted(g.gate);
    b.emit({g.x, g.gate, *given, dx.tensor, dgate.tensor}, [=, dy = *given](const Run& run) {
      const auto place = [&](const Tensor& t) { return t.defined() ? run.at<T>(t) : nullptr; };
      gate_backward(run.team, g.op, run.at<T>(g.x), run.at<T>(g.gate), run.at<T>(dy),
                    GateGradients<T>{place(dx.tensor), place(dgate.tensor), dx.add, dgate.add}, n);
    });
  });
}

}  // namespace

// If both factors could wait, the first one does: the kernel at the product has one activation.
bool waits_for_product(const LoweringContext& site) {
  const auto product = only_product(site);
  if (!product) return false;
  const auto first = argument_as<ValueId>(site.b.graph().nodes[*product], 0);
  if (first == site.output()) return true;
  const auto maker = site.b.maker(first);
  return !maker || !only_product(LoweringContext(site.b, *maker));
}

bool gated_product(LoweringContext& site) {
  Builder& b = site.b;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* value = site.argument<ValueId>(i);
    const auto maker = value == nullptr ? std::nullopt : b.maker(*value);
    if (!maker) continue;
    const LoweringContext activation(b, *maker);
    if (!waits_for_product(activation)) continue;
    const Tensor x = b.contiguous(site.floats(i)), gate = b.contiguous(site.floats(1 - i));
    if (gate.sizes != x.sizes) site.fail("its factors are of other sizes than the graph says");
    const Gated gated{*costly_activation(activation), x, gate, b.fresh(x.sizes)};
    typed(b.dtype(), [&]<typename T>() { emit_gated<T>(b, gated); });
    site.bind(gated.y);
    return true;
  }
  return false;
}

}  // namespace hfta::fusion::cpu
