// B normalisations; statistics are each slot's own.
#include <ATen/ATen.h>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batch_norm.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/kernel_types.hpp"
#include "fusion/eager/layer_norm.hpp"
#include "fusion/eager/layout.hpp"

namespace hfta::fusion {
namespace {

at::Tensor flat(const at::Tensor& t) { return t.defined() ? t.flatten() : t; }

// batch_norm and instance_norm share their schema: input, weight, bias, running_mean, running_var, training (or
// use_input_stats), momentum, eps, cudnn_enabled.
using Norm = at::Tensor (*)(const at::Tensor&, const std::optional<at::Tensor>&, const std::optional<at::Tensor>&,
                            const std::optional<at::Tensor>&, const std::optional<at::Tensor>&, bool, double, double,
                            bool);

// Slots as groups of channels: [N, c*C, ...]. Running statistics are views of the slots' own and updated in place.
template <Norm kNorm>
std::vector<at::Tensor> folded(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  const at::Tensor y = kNorm(slots_into_channels(x), flat(call.tensor(1)), flat(call.tensor(2)), flat(call.tensor(3)),
                             flat(call.tensor(4)), call.flag(5), call.number(6), call.number(7), call.flag(8));
  return {slots_out_of_channels(y, x.size(0))};
}

// Schema: as above.
std::vector<at::Tensor> batch_norm(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  const OwnBatchNorm norm{call.tensor(1), call.tensor(2), call.tensor(3), call.tensor(4),
                          call.flag(5),   call.number(6), call.number(7), call.relu()};
  if (kernels_take(x) && batch_norm_reads(x, norm)) return {own_batch_norm(x, norm)};
  std::vector<at::Tensor> y = folded<at::batch_norm>(call);
  return call.relu() ? std::vector<at::Tensor>{at::relu(y.front())} : y;
}

// weight and bias [c, shape...], spread to stand beside x from dimension `first` on. Of y's type, as the ops with
// weights of their own give it: beside a y in bfloat16 weights may be float32.
at::Tensor affine(const at::Tensor& normal, const at::Tensor& weight, const at::Tensor& bias, std::int64_t first) {
  at::Tensor y = normal;
  const auto spread = [&](const at::Tensor& t) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(y.dim()), 1);
    for (std::int64_t d = 0; d < t.dim(); ++d) {
      sizes[static_cast<std::size_t>(d == 0 ? 0 : first + d - 1)] = t.size(d);
    }
    return t.reshape(sizes);
  };
  if (weight.defined()) y = y * spread(weight);
  if (bias.defined()) y = y + spread(bias);
  return y.to(normal.scalar_type());
}

// Schema: input, normalized_shape, weight, bias, eps.
std::vector<at::Tensor> layer_norm(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  const std::vector<std::int64_t> shape = call.ints(1);
  if (const at::Tensor exact = as_normalised(x); kernels_take(exact)) {
    return {own_layer_norm(exact, call.tensor(2), call.tensor(3), c10::multiply_integers(shape), call.number(4))};
  }
  return {affine(at::layer_norm(x, shape, {}, {}, call.number(4)), call.tensor(2), call.tensor(3),
                 x.dim() - static_cast<std::int64_t>(shape.size()))};
}

// Schema: input, num_groups, weight, bias, eps.
std::vector<at::Tensor> group_norm(const OpCall& call) {
  const MergedBatch batch = merge_batch(call.tensor(0));
  const at::Tensor y = batch.restore(at::group_norm(batch.merged, call.integer(1), {}, {}, call.number(4)));
  return {affine(y, call.tensor(2), call.tensor(3), 2)};
}

// The backward of LibTorch 2.11 ends with SIGSEGV where the input lies channels last and needs no gradient itself.
std::vector<at::Tensor> group_norm_alone(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  return {at::group_norm(x.requires_grad() ? x : x.contiguous(), call.integer(1), call.tensor(2), call.tensor(3),
                         call.number(4))};
}

}  // namespace

std::vector<BatchingRule> norm_rules() {
  return {{"aten::batch_norm", "batch_norm", {{"folded", batch_norm, nullptr, true}, by_slot()}},
          {"aten::instance_norm", "instance_norm", {{"folded", folded<at::instance_norm>, nullptr}, by_slot()}},
          {"aten::layer_norm", "layer_norm", {{"broadcast", layer_norm, nullptr}}},
          {"aten::group_norm", "group_norm", {{"merged", group_norm, nullptr}}, {}, group_norm_alone}};
}

}  // namespace hfta::fusion
