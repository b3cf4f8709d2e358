// B convolutions: x [c, N, C, spatial...], weight [c, O, C/groups, kernel...], bias [c, O] -> [c, N, O, spatial...].
// Transposed ones have weight [c, C, O/groups, kernel...].
#include "fusion/eager/conv.hpp"

#include <ATen/ATen.h>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/kernel_types.hpp"
#include "fusion/eager/layout.hpp"

namespace hfta::fusion {
namespace {

struct Conv {
  at::Tensor x, weight, bias;
  std::vector<std::int64_t> stride, padding, dilation, output_padding;
  std::int64_t groups;
  bool transposed;
  const OpCall& call;

  // conv1d to conv3d: input, weight, bias, stride, padding, dilation, groups; transposed: input, weight, bias, stride,
  // padding, output_padding, groups, dilation.
  Conv(const OpCall& c, bool is_transposed)
      : x(as_multiplied(c.tensor(0))),
        weight(c.tensor(1)),
        bias(c.tensor(2)),
        stride(c.ints(3)),
        padding(c.ints(4)),
        dilation(c.ints(is_transposed ? 7 : 5)),
        output_padding(is_transposed ? c.ints(5) : std::vector<std::int64_t>(stride.size(), 0)),
        groups(c.integer(6)),
        transposed(is_transposed),
        call(c) {}

  [[nodiscard]] at::Tensor run(const at::Tensor& input, const at::Tensor& w, const at::Tensor& b,
                               std::int64_t group_count) const {
    if (input.is_complex()) return run_complex(input, w, b, group_count);
    return at::convolution(input, as_multiplied(w), as_multiplied(b), stride, padding, dilation, transposed,
                           output_padding, group_count);
  }

  // Three convolutions of parts, as LibTorch's conv1d to conv3d do it; never in bfloat16.
  [[nodiscard]] at::Tensor run_complex(const at::Tensor& input, const at::Tensor& w, const at::Tensor& b,
                                       std::int64_t group_count) const {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const auto of = [&](const at::Tensor& x_part, const at::Tensor& w_part, const at::Tensor& b_part) {
      return at::convolution(x_part, w_part, b_part, stride, padding, dilation, transposed, output_padding,
                             group_count);
    };
    const at::Tensor xr = at::real(input), xi = at::imag(input), wr = at::real(w), wi = at::imag(w);
    const at::Tensor br = b.defined() ? at::real(b) : b, both = b.defined() ? at::real(b) + at::imag(b) : b;
    const at::Tensor real = of(xr, wr, br), imag = of(xi, wi, {}), sum = of(xr + xi, wr + wi, both);
    return at::complex(real - imag, sum - real - imag);
  }

  // cuDNN's kernels for tensor cores take several groups at a time where these have few channels: zeros are multiplied
  // with another slot's numbers, of which some may be NaN (seen on an H100 with 3 channels, in tf32 and in bfloat16).
  [[nodiscard]] bool groups_share_tiles() const {
    const bool tensor_cores = x.is_cuda() && (x.scalar_type() == at::kBFloat16 || at::globalContext().allowTF32CuDNN());
    constexpr std::int64_t kTile = 16;
    return tensor_cores && (weight.size(1) / groups % kTile != 0 || weight.size(2) % kTile != 0);
  }
  // The op itself, slot by slot.
  [[nodiscard]] at::Tensor run_in_turn() const {
    std::vector<at::Tensor> rows;
    for (std::int64_t b = 0; b < x.size(0); ++b) {
      rows.push_back(run(x.select(0, b), weight.select(0, b), bias.defined() ? bias.select(0, b) : bias, groups));
    }
    return at::stack(rows);
  }

  // A layer that slots share sees their samples as one batch.
  [[nodiscard]] bool is_shared() const { return call.shared(1) && call.shared(2); }
  [[nodiscard]] at::Tensor run_shared() const {
    const MergedBatch batch = merge_batch(x);
    return batch.restore(run(batch.merged, call.shared_tensor(1), call.shared_tensor(2), groups));
  }

  // HFTA's form (MLSys'21, section 3): c convolutions are one with c times the groups.
  [[nodiscard]] at::Tensor run_grouped(const at::Tensor& slots_inside) const {
    const std::int64_t c = x.size(0);
    const at::Tensor flat_bias = bias.defined() ? bias.flatten() : at::Tensor();
    return slots_out_of_channels(run(slots_inside, weight.flatten(0, 1), flat_bias, c * groups), c);
  }
};

template <bool kTransposed>
std::vector<at::Tensor> grouped(const OpCall& call) {
  const Conv conv(call, kTransposed);
  if (conv.is_shared()) return {conv.run_shared()};
  return {conv.groups_share_tiles() ? conv.run_in_turn() : conv.run_grouped(slots_into_channels(conv.x))};
}

std::vector<at::Tensor> grouped_channels_last(const OpCall& call) {
  const Conv conv(call, false);
  if (conv.is_shared()) return {conv.run_shared()};
  // oneDNN's bfloat16 kernels for this layout take several groups at a time: where channels do not fill a register,
  // zeros are multiplied with another slot's numbers, of which some may be NaN (seen on AMD Zen 4 with 3 channels).
  if (conv.x.is_cpu() && conv.x.scalar_type() == at::kBFloat16) return grouped<false>(call);
  if (conv.groups_share_tiles()) return {conv.run_in_turn()};
  return {conv.run_grouped(slots_into_channels(conv.x).contiguous(at::MemoryFormat::ChannelsLast))};
}

// All of one type, in which the products are to be computed.
bool is_ours(const Conv& conv) {
  const at::Tensor &x = conv.x, &bias = conv.bias;
  const auto same = [&](const at::Tensor& t) { return t.scalar_type() == x.scalar_type(); };
  const bool images =
      x.dim() == 5 && x.numel() > 0 && conv.stride.size() == 2 && conv.padding.size() == 2 && conv.dilation.size() == 2;
  return images && same(conv.weight) && (!bias.defined() || same(bias)) && kernels_take(x) && !is_lowered(x);
}

// One matrix product per slot over its patches: [O, C*k] x [C*k, N*L].
std::vector<at::Tensor> unfolded(const OpCall& call) {
  const Conv conv(call, false);
  if (conv.is_shared()) return {conv.run_shared()};
  if (conv.x.is_complex()) return grouped<false>(call);
  if (is_ours(conv)) {
    return {own_conv2d(conv.x, conv.weight, conv.bias, {conv.stride, conv.padding, conv.dilation})};
  }
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

bool ungrouped(const Node& node) {
  const auto* groups = argument_if<std::int64_t>(node, 6);
  return groups != nullptr && *groups == 1;
}

}  // namespace

std::vector<BatchingRule> conv_rules() {
  const Candidate as_groups{"grouped", grouped<false>, nullptr};
  std::vector<BatchingRule> rules = {{"aten::conv2d",
                                      "conv",
                                      {as_groups,
                                       {"grouped_channels_last", grouped_channels_last, nullptr},
                                       {"unfolded", unfolded, ungrouped},
                                       by_slot()}},
                                     {"aten::conv1d", "conv", {as_groups, by_slot()}},
                                     {"aten::conv3d", "conv", {as_groups, by_slot()}}};
  for (const char* op : {"aten::conv_transpose1d", "aten::conv_transpose2d.input", "aten::conv_transpose3d.input"}) {
    rules.push_back({op, "conv_transpose", {{"grouped", grouped<true>, nullptr}, by_slot()}});
  }
  return rules;
}

}  // namespace hfta::fusion
