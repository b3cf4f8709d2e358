#include <fmt/format.h>

#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

enum class Pool { kMax, kAverage };

std::string wanted_input(std::size_t dims) { return dims == 1 ? "[N, C, L]" : "[N, C, H, W]"; }

// One output size, by PyTorch's rule for ceil_mode: no window starts in the padding behind the input.
std::int64_t pooled_size(std::int64_t size, std::int64_t reach, std::int64_t stride, std::int64_t padding, bool ceil) {
  const std::int64_t room = size + 2 * padding - reach;
  const std::int64_t out = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (out - 1) * stride >= size + padding ? out - 1 : out;
}

Shape pooled(const LayerBuilder& layer, const std::vector<std::int64_t>& kernel,
             const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& padding,
             const std::vector<std::int64_t>& dilation) {
  const Shape& input = layer.shape();
  if (input.size() != kernel.size() + 2) layer.wrong_input(wanted_input(kernel.size()));
  Shape output{kBatch, input[1]};
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const std::int64_t reach = dilation[d] * (kernel[d] - 1) + 1;
    if (padding[d] > reach / 2) {
      layer.fail(fmt::format("padding: found {}, wanted at most half of the kernel's reach of {}", padding[d], reach));
    }
    if (input[d + 2] + 2 * padding[d] < reach) {
      layer.fail(
          fmt::format("found input {} ({} with padding along dimension {}), wanted at least the kernel's reach, {}",
                      to_text(input), input[d + 2] + 2 * padding[d], d + 2, reach));
    }
    output.push_back(pooled_size(input[d + 2], reach, stride[d], padding[d], layer.flag("ceil_mode")));
  }
  return output;
}

void emit_pool(LayerBuilder& layer, Pool pool, std::size_t dims) {
  const std::vector<std::int64_t> kernel = layer.integers("kernel_size");
  const std::vector<std::int64_t> stride = layer.has("stride") ? layer.integers("stride") : kernel;
  const std::vector<std::int64_t> padding = layer.integers("padding");
  const bool ceil = layer.flag("ceil_mode");
  if (pool == Pool::kMax) {
    const std::vector<std::int64_t> dilation = layer.integers("dilation");
    const Shape output = pooled(layer, kernel, stride, padding, dilation);
    layer.call(dims == 1 ? "aten::max_pool1d" : "aten::max_pool2d", {kernel, stride, padding, dilation, ceil}, output);
  } else {
    const Shape output = pooled(layer, kernel, stride, padding, std::vector<std::int64_t>(dims, 1));
    std::vector<Arg> args{kernel, stride, padding, ceil, layer.flag("count_include_pad")};
    if (dims == 2) args.push_back(layer.has("divisor_override") ? Arg(layer.integer("divisor_override")) : Arg());
    layer.call(dims == 1 ? "aten::avg_pool1d" : "aten::avg_pool2d", std::move(args), output);
  }
}

void emit_adaptive(LayerBuilder& layer, Pool pool, std::size_t dims) {
  if (layer.shape().size() != dims + 2) layer.wrong_input(wanted_input(dims));
  const std::vector<std::int64_t> size = layer.integers("output_size");
  Shape output{kBatch, layer.shape()[1]};
  output.insert(output.end(), size.begin(), size.end());
  const std::string op = fmt::format("aten::adaptive_{}_pool{}d", pool == Pool::kMax ? "max" : "avg", dims);
  layer.call(op, {size}, output, "", pool == Pool::kMax);
}

std::vector<ArgRule> pool_rules(Pool pool, int dims) {
  ArgRule stride = window_rule("stride", dims, 1);
  stride.required = false;  // left out, it is the kernel's size
  std::vector<ArgRule> rules{window_rule("kernel_size", dims, 1), stride,
                             window_rule("padding", dims, 0, std::int64_t{0})};
  if (pool == Pool::kMax) rules.push_back(window_rule("dilation", dims, 1, std::int64_t{1}));
  rules.push_back({.name = "ceil_mode", .type = ArgType::kFlag, .fallback = false});
  if (pool == Pool::kMax) return rules;
  rules.push_back({.name = "count_include_pad", .type = ArgType::kFlag, .fallback = true});
  if (dims == 2) rules.push_back({.name = "divisor_override", .required = false, .least = 1});
  return rules;
}

}  // namespace

std::vector<LayerKind> pool_kinds() {
  std::vector<LayerKind> kinds;
  for (const Pool pool : {Pool::kMax, Pool::kAverage}) {
    for (const int dims : {1, 2}) {
      const std::string name = fmt::format("{}_pool{}d", pool == Pool::kMax ? "max" : "avg", dims);
      const auto count = static_cast<std::size_t>(dims);
      kinds.push_back({name, pool_rules(pool, dims), [=](LayerBuilder& layer) { emit_pool(layer, pool, count); }});
      kinds.push_back({"adaptive_" + name, {window_rule("output_size", dims, 1)}, [=](LayerBuilder& layer) {
                         emit_adaptive(layer, pool, count);
                       }});
    }
  }
  return kinds;
}

}  // namespace hfta::fusion
