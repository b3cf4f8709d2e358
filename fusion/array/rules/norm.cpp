// B normalisations; statistics are each slot's own.
#include <ATen/ATen.h>

#include "fusion/array/layout.hpp"
#include "fusion/array/rules.hpp"

namespace hfta::fusion {
namespace {

at::Tensor flat(const at::Tensor& t) { return t.defined() ? t.flatten() : t; }
at::Tensor slot_of(const at::Tensor& t, std::int64_t b) { return t.defined() ? t.select(0, b) : t; }

// Schema: input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled.
bool batch_statistics(const Call& call) { return call.flag(5, true) && call.context().training; }

// Slots as groups of channels: [N, c*C, ...]. Running statistics are views of the slots' own and updated in place.
std::vector<at::Tensor> batch_norm_folded(const Call& call) {
  const at::Tensor x = call.tensor(0);
  const at::Tensor y = at::batch_norm(slots_into_channels(x), flat(call.tensor(1)), flat(call.tensor(2)),
                                      flat(call.tensor(3)), flat(call.tensor(4)), batch_statistics(call),
                                      call.number(6, 0.1), call.number(7, 1e-5), call.flag(8, true));
  return {slots_out_of_channels(y, x.size(0))};
}

std::vector<at::Tensor> batch_norm_per_slot(const Call& call) {
  const at::Tensor x = call.tensor(0);
  std::vector<at::Tensor> out;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    out.push_back(at::batch_norm(x.select(0, b), slot_of(call.tensor(1), b), slot_of(call.tensor(2), b),
                                 slot_of(call.tensor(3), b), slot_of(call.tensor(4), b), batch_statistics(call),
                                 call.number(6, 0.1), call.number(7, 1e-5), call.flag(8, true)));
  }
  return {at::stack(out)};
}

// Schema: input, normalized_shape, weight, bias, eps. The affine part is broadcast from [c, 1..., shape].
std::vector<at::Tensor> layer_norm(const Call& call) {
  const at::Tensor x = call.tensor(0), weight = call.tensor(2), bias = call.tensor(3);
  const std::vector<std::int64_t>& shape = call.ints(1);
  const auto spread = [&](const at::Tensor& t) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()) - shape.size(), 1);
    sizes[0] = x.size(0);
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return t.reshape(sizes);
  };
  at::Tensor y = at::layer_norm(x, shape, {}, {}, call.number(4, 1e-5));
  if (weight.defined()) y = y * spread(weight);
  if (bias.defined()) y = y + spread(bias);
  return {y};
}

}  // namespace

std::vector<Rule> norm_rules() {
  return {{"aten::batch_norm",
           "batch_norm",
           {{"folded", batch_norm_folded, nullptr}, {"per_slot", batch_norm_per_slot, nullptr}},
           {}},
          {"aten::layer_norm", "layer_norm", {{"broadcast", layer_norm, nullptr}}, {}}};
}

}  // namespace hfta::fusion
