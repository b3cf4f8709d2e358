#include <fmt/format.h>

#include <algorithm>

#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

constexpr const char *kBatchNorm = "aten::batch_norm", *kLayerNorm = "aten::layer_norm";

void emit_batch_norm(LayerBuilder& layer, bool images) {
  const std::int64_t features = layer.integer("num_features");
  const Shape& input = layer.shape();
  const bool rank_fits = images ? input.size() == 4 : input.size() == 2 || input.size() == 3;
  if (!rank_fits || input[1] != features) {
    const char* sizes = images ? ", H, W" : input.size() == 3 ? ", L" : "";
    layer.wrong_input(fmt::format("[N, {}{}]", features, sizes));
  }
  Arg weight;
  Arg bias;
  if (layer.flag("affine")) {
    weight = layer.parameter(kBatchNorm, "weight", {features}, {features});
    bias = layer.parameter(kBatchNorm, "bias", {features}, {features});
  }
  const ValueId mean = layer.parameter(kBatchNorm, "running_mean", {features}, {features}, false);
  const ValueId variance = layer.parameter(kBatchNorm, "running_var", {features}, {features}, false);
  layer.call(kBatchNorm, {weight, bias, mean, variance, true, layer.real("momentum"), layer.real("eps"), false},
             layer.shape());
}

void emit_batch_norm1d(LayerBuilder& layer) { emit_batch_norm(layer, false); }
void emit_batch_norm2d(LayerBuilder& layer) { emit_batch_norm(layer, true); }

void emit_layer_norm(LayerBuilder& layer) {
  const std::vector<std::int64_t> normalized = layer.integers("normalized_shape");
  const Shape& input = layer.shape();
  if (input.size() < normalized.size() + 1 || !std::equal(normalized.rbegin(), normalized.rend(), input.rbegin())) {
    std::string wanted = "[N, ...";
    for (const std::int64_t size : normalized) wanted += fmt::format(", {}", size);
    layer.wrong_input(wanted + "]");
  }
  Arg weight;
  Arg bias;
  if (layer.flag("elementwise_affine")) {
    weight = layer.parameter(kLayerNorm, "weight", normalized, normalized);
    if (layer.flag("bias")) bias = layer.parameter(kLayerNorm, "bias", normalized, normalized);
  }
  layer.call(kLayerNorm, {normalized, weight, bias, layer.real("eps"), false}, layer.shape());
}

void emit_dropout(LayerBuilder& layer) {
  const HyperRef p = layer.hyper("p", layer.real("p"));
  layer.call("aten::dropout", {p, true}, layer.shape());
}

std::vector<ArgRule> batch_norm_rules() {
  return {{.name = "num_features", .least = 1},
          {.name = "eps", .type = ArgType::kReal, .fallback = 1e-5, .least = 0},
          {.name = "momentum", .type = ArgType::kReal, .fallback = 0.1, .least = 0, .most = 1},
          {.name = "affine", .type = ArgType::kFlag, .fallback = true}};
}

}  // namespace

std::vector<LayerKind> norm_kinds() {
  return {{"batch_norm1d", batch_norm_rules(), emit_batch_norm1d},
          {"batch_norm2d", batch_norm_rules(), emit_batch_norm2d},
          {"layer_norm",
           {{.name = "normalized_shape", .type = ArgType::kInts, .count = 0, .least = 1},
            {.name = "eps", .type = ArgType::kReal, .fallback = 1e-5, .least = 0},
            {.name = "elementwise_affine", .type = ArgType::kFlag, .fallback = true},
            {.name = "bias", .type = ArgType::kFlag, .fallback = true}},
           emit_layer_norm},
          {"dropout",
           {{.name = "p", .type = ArgType::kReal, .fallback = 0.5, .least = 0, .most = 1, .fusible = true}},
           emit_dropout}};
}

}  // namespace hfta::fusion
