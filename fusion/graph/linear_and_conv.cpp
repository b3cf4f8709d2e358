#include <fmt/format.h>

#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

constexpr const char* kLinear = "aten::linear";

void emit_linear(LayerBuilder& layer) {
  const std::int64_t in = layer.integer("in_features");
  const std::int64_t out = layer.integer("out_features");
  Shape wanted = layer.shape();
  if (wanted.size() < 2) layer.wrong_input(to_text(Shape{kBatch, in}));
  wanted.back() = in;
  if (wanted != layer.shape()) {
    const bool flat = wanted.size() > 2 && element_count(layer.shape()) == in;
    layer.wrong_input(to_text(flat ? Shape{kBatch, in} : wanted) + (flat ? "; put flatten before it" : ""));
  }
  const ValueId weight = layer.parameter(kLinear, "weight", {out, in}, {out, in});
  Arg bias;
  if (layer.flag("bias")) bias = layer.parameter(kLinear, "bias", {out}, {out, in});
  wanted.back() = out;
  layer.call(kLinear, {weight, bias}, wanted);
}

struct Window {
  std::vector<std::int64_t> kernel, stride, padding, dilation, extra;
};

// 'same' with an even reach pads one more at the end than at the front, which conv cannot: `extra` is padded before.
Window conv_window(const LayerBuilder& layer) {
  const std::vector<std::int64_t> kernel = layer.integers("kernel_size");
  const std::vector<std::int64_t> zeros(kernel.size(), 0);
  Window window{kernel, layer.integers("stride"), zeros, layer.integers("dilation"), zeros};
  const auto word = layer.word("padding");
  if (!word) window.padding = layer.integers("padding");
  if (word != "same") return window;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    if (window.stride[d] != 1) {
      layer.fail(fmt::format("padding: found 'same' with stride {}, wanted stride 1", window.stride[d]));
    }
    const std::int64_t total = window.dilation[d] * (kernel[d] - 1);
    window.padding[d] = total / 2;
    window.extra[d] = total % 2;
  }
  return window;
}

std::string wanted_input(std::int64_t channels, std::size_t dims) {
  return dims == 1 ? fmt::format("[N, {}, L]", channels) : fmt::format("[N, {}, H, W]", channels);
}

// Throws unless the input is [N, in_channels, ...] with `dims` sizes behind.
void check_conv_input(const LayerBuilder& layer, std::int64_t channels, std::size_t dims) {
  const Shape& shape = layer.shape();
  if (shape.size() == dims + 2 && shape[1] == channels) return;
  std::string hint;
  if (shape.size() == dims + 1) {
    hint = fmt::format("; put {{reshape: [1, {}", shape[1]);
    for (std::size_t d = 2; d < shape.size(); ++d) hint += fmt::format(", {}", shape[d]);
    hint += "]} before it to give samples a channel dimension";
  }
  layer.wrong_input(wanted_input(channels, dims) + hint);
}

Shape conv_output(const LayerBuilder& layer, const Window& window, std::int64_t out_channels) {
  const Shape& input = layer.shape();
  Shape output{kBatch, out_channels};
  for (std::size_t d = 0; d < window.kernel.size(); ++d) {
    const std::int64_t reach = window.dilation[d] * (window.kernel[d] - 1) + 1;
    const std::int64_t padded = input[d + 2] + 2 * window.padding[d] + window.extra[d];
    if (padded < reach) {
      layer.fail(
          fmt::format("found input {} ({} with padding along dimension {}), wanted at least the kernel's reach, {}",
                      to_text(input), padded, d + 2, reach));
    }
    output.push_back((padded - reach) / window.stride[d] + 1);
  }
  return output;
}

void pad_ends(LayerBuilder& layer, const Window& window) {
  Shape padded = layer.shape();
  std::vector<std::int64_t> pads;  // last dimension first: front, end
  for (std::size_t d = window.extra.size(); d-- > 0;) {
    pads.insert(pads.end(), {0, window.extra[d]});
    padded[d + 2] += window.extra[d];
  }
  if (padded != layer.shape()) layer.call("aten::constant_pad_nd", {pads, std::int64_t{0}}, padded, ".pad");
}

void emit_conv(LayerBuilder& layer, std::size_t dims) {
  const std::int64_t in = layer.integer("in_channels");
  const std::int64_t out = layer.integer("out_channels");
  const std::int64_t groups = layer.integer("groups");
  for (const auto& [name, channels] : {std::pair{"in_channels", in}, std::pair{"out_channels", out}}) {
    if (channels % groups != 0)
      layer.fail(fmt::format("{}: found {}, wanted a multiple of groups = {}", name, channels, groups));
  }
  check_conv_input(layer, in, dims);
  const Window window = conv_window(layer);
  const Shape output = conv_output(layer, window, out);
  Shape weight_shape{out, in / groups};
  weight_shape.insert(weight_shape.end(), window.kernel.begin(), window.kernel.end());
  const char* const op = dims == 1 ? "aten::conv1d" : "aten::conv2d";
  const ValueId weight = layer.parameter(op, "weight", weight_shape, weight_shape);
  Arg bias;
  if (layer.flag("bias")) bias = layer.parameter(op, "bias", {out}, weight_shape);
  pad_ends(layer, window);
  layer.call(op, {weight, bias, window.stride, window.padding, window.dilation, groups}, output);
}

std::vector<ArgRule> conv_rules(int dims) {
  ArgRule padding = window_rule("padding", dims, 0, std::int64_t{0});
  padding.words = {"same", "valid"};
  return {{.name = "in_channels", .least = 1},
          {.name = "out_channels", .least = 1},
          window_rule("kernel_size", dims, 1, std::nullopt),
          window_rule("stride", dims, 1, std::int64_t{1}),
          padding,
          window_rule("dilation", dims, 1, std::int64_t{1}),
          {.name = "groups", .fallback = std::int64_t{1}, .least = 1},
          {.name = "bias", .type = ArgType::kFlag, .fallback = true}};
}

}  // namespace

std::vector<LayerKind> linear_and_conv_kinds() {
  return {{"linear",
           {{.name = "in_features", .least = 1},
            {.name = "out_features", .least = 1},
            {.name = "bias", .type = ArgType::kFlag, .fallback = true}},
           emit_linear},
          {"conv1d", conv_rules(1), [](LayerBuilder& layer) { emit_conv(layer, 1); }},
          {"conv2d", conv_rules(2), [](LayerBuilder& layer) { emit_conv(layer, 2); }}};
}

}  // namespace hfta::fusion
