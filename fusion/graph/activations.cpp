#include <fmt/format.h>

#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

ArgRule real(const char* name, double fallback) { return {.name = name, .type = ArgType::kReal, .fallback = fallback}; }

// A kind whose ATen op has the kind's own name and takes the kind's arguments, in their order.
LayerKind elementwise(const std::string& name, const std::vector<ArgRule>& rules = {}) {
  return {name, rules, [op = "aten::" + name, rules](LayerBuilder& layer) {
            std::vector<Arg> args;
            args.reserve(rules.size());
            for (const ArgRule& rule : rules) args.emplace_back(layer.real(rule.name));
            layer.call(op, std::move(args), layer.shape());
          }};
}

void emit_elu(LayerBuilder& layer) { layer.call("aten::elu", {layer.real("alpha"), 1.0, 1.0}, layer.shape()); }

void emit_gelu(LayerBuilder& layer) { layer.call("aten::gelu", {layer.word("approximate").value()}, layer.shape()); }

void emit_softplus(LayerBuilder& layer) {
  if (!(layer.real("beta") > 0)) layer.fail("beta: found 0, wanted a number above 0");
  layer.call("aten::softplus", {layer.real("beta"), layer.real("threshold")}, layer.shape());
}

void emit_hardtanh(LayerBuilder& layer) {
  const double low = layer.real("min_val");
  const double high = layer.real("max_val");
  if (!(low < high)) layer.fail(fmt::format("min_val: found {}, wanted less than max_val = {}", low, high));
  layer.call("aten::hardtanh", {low, high}, layer.shape());
}

// PyTorch guesses a missing dim and warns; on [N, C] only one can be meant.
LayerKind softmax(const std::string& name) {
  return {name, {{.name = "dim", .required = false}}, [op = "aten::" + name + ".int"](LayerBuilder& layer) {
            if (!layer.has("dim") && layer.shape().size() != 2) {
              layer.fail("dim: found nothing on input " + to_text(layer.shape()) + ", wanted a dimension");
            }
            const std::size_t dim = layer.has("dim") ? layer.dimension("dim") : 1;
            layer.call(op, {static_cast<std::int64_t>(dim), Arg()}, layer.shape());
          }};
}

}  // namespace

std::vector<LayerKind> activation_kinds() {
  ArgRule beta = real("beta", 1);
  beta.least = 0;
  return {
      elementwise("relu"),
      elementwise("relu6"),
      elementwise("leaky_relu", {real("negative_slope", 0.01)}),
      {"elu", {real("alpha", 1)}, emit_elu},
      {"gelu",
       {{.name = "approximate", .type = ArgType::kWord, .fallback = std::string("none"), .words = {"none", "tanh"}}},
       emit_gelu},
      elementwise("silu"),
      elementwise("mish"),
      elementwise("selu"),
      elementwise("sigmoid"),
      elementwise("tanh"),
      {"softplus", {beta, real("threshold", 20)}, emit_softplus},
      elementwise("hardswish"),
      elementwise("hardsigmoid"),
      {"hardtanh", {real("min_val", -1), real("max_val", 1)}, emit_hardtanh},
      softmax("softmax"),
      softmax("log_softmax")};
}

}  // namespace hfta::fusion
