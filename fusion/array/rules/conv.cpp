// B convolutions: x [c, N, C, spatial...], weight [c, O, C/groups, kernel...], bias [c, O] -> [c, N, O, spatial...].
#include <ATen/ATen.h>

#include "fusion/array/layout.hpp"
#include "fusion/array/rules.hpp"

namespace hfta::fusion {
namespace {

// conv1d and conv2d share their schema: input, weight, bias, stride, padding, dilation, groups.
struct Conv {
  at::Tensor x, weight, bias;
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups;

  explicit Conv(const Call& call)
      : x(call.tensor(0)),
        weight(call.tensor(1)),
        bias(call.tensor(2)),
        stride(call.ints(3)),
        padding(call.ints(4)),
        dilation(call.ints(5)),
        groups(call.integer(6, 1)) {}

  [[nodiscard]] at::Tensor run(const at::Tensor& input, const at::Tensor& w, const at::Tensor& b,
                               std::int64_t group_count) const {
    const std::vector<std::int64_t> no_output_padding(stride.size(), 0);
    return at::convolution(input, w, b, stride, padding, dilation, false, no_output_padding, group_count);
  }
};

// HFTA's form (MLSys'21, section 3): c convolutions are one with c times the groups.
std::vector<at::Tensor> grouped(const Call& call) {
  const Conv conv(call);
  const std::int64_t c = conv.x.size(0);
  const at::Tensor bias = conv.bias.defined() ? conv.bias.flatten() : at::Tensor();
  const at::Tensor y = conv.run(slots_into_channels(conv.x), conv.weight.flatten(0, 1), bias, c * conv.groups);
  return {slots_out_of_channels(y, c)};
}

std::vector<at::Tensor> grouped_channels_last(const Call& call) {
  const Conv conv(call);
  const std::int64_t c = conv.x.size(0);
  const at::Tensor bias = conv.bias.defined() ? conv.bias.flatten() : at::Tensor();
  const at::Tensor x = slots_into_channels(conv.x).contiguous(at::MemoryFormat::ChannelsLast);
  return {slots_out_of_channels(conv.run(x, conv.weight.flatten(0, 1), bias, c * conv.groups), c)};
}

// One matrix product per slot over its patches: [O, C*k] x [C*k, N*L].
std::vector<at::Tensor> unfolded(const Call& call) {
  const Conv conv(call);
  const std::int64_t c = conv.x.size(0), n = conv.x.size(1), out_channels = conv.weight.size(1);
  const at::Tensor images = conv.x.flatten(0, 1);
  const std::vector<std::int64_t> kernel = conv.weight.sizes().slice(3).vec();
  const at::Tensor patches = at::im2col(images, kernel, conv.dilation, conv.padding, conv.stride);  // [c*N, C*k, L]
  const std::int64_t columns = patches.size(2);
  const at::Tensor gathered = patches.view({c, n, patches.size(1), columns}).transpose(1, 2).flatten(2);
  const at::Tensor weight = conv.weight.flatten(2);
  const at::Tensor y =
      conv.bias.defined() ? at::baddbmm(conv.bias.unsqueeze(2), weight, gathered) : at::bmm(weight, gathered);
  std::vector<std::int64_t> shape = {c, out_channels, n};
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const std::int64_t size = conv.x.size(static_cast<std::int64_t>(d) + 3);
    shape.push_back((size + 2 * conv.padding[d] - conv.dilation[d] * (kernel[d] - 1) - 1) / conv.stride[d] + 1);
  }
  return {y.view(shape).transpose(1, 2)};
}

std::vector<at::Tensor> per_slot(const Call& call) {
  const Conv conv(call);
  std::vector<at::Tensor> out;
  for (std::int64_t b = 0; b < conv.x.size(0); ++b) {
    out.push_back(conv.run(conv.x.select(0, b), conv.weight.select(0, b),
                           conv.bias.defined() ? conv.bias.select(0, b) : at::Tensor(), conv.groups));
  }
  return {at::stack(out)};
}

bool ungrouped(const Node& node) { return node.args.size() < 7 || std::get<std::int64_t>(node.args[6]) == 1; }

}  // namespace

std::vector<Rule> conv_rules() {
  return {{"aten::conv2d",
           "conv",
           {{"grouped", grouped, nullptr},
            {"grouped_channels_last", grouped_channels_last, nullptr},
            {"unfolded", unfolded, ungrouped},
            {"per_slot", per_slot, nullptr}},
           {}},
          {"aten::conv1d", "conv", {{"grouped", grouped, nullptr}, {"per_slot", per_slot, nullptr}}, {}}};
}

}  // namespace hfta::fusion
