// Poolings have no weights: slots join the batch, or whichever dimension they lie beside, since planes are taken one by
// one. x [c, N, C, spatial...] -> [c, N, C, smaller...].
#include <ATen/ATen.h>

#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/layout.hpp"

namespace hfta::fusion {
namespace {

// Runs the pooling, and if call.relu() the relu that stood in front, too.
template <int kDims, typename Pool>
std::vector<at::Tensor> over_planes(const OpCall& call, Pool pool) {
  const MergedPlanes planes = planes_in_memory_order(call.tensor(0), kDims);
  const at::Tensor y = pool(planes.merged);
  return {planes.restore(call.relu() ? at::relu(y) : y)};
}

// Schema: self, kernel_size, stride, padding, dilation, ceil_mode.
std::vector<at::Tensor> max_pool2d(const OpCall& call) {
  return over_planes<2>(call, [&](const at::Tensor& x) {
    return at::max_pool2d(x, call.ints(1), call.ints(2), call.ints(3), call.ints(4), call.flag(5));
  });
}

std::vector<at::Tensor> max_pool1d(const OpCall& call) {
  return over_planes<1>(call, [&](const at::Tensor& x) {
    return at::max_pool1d(x, call.ints(1), call.ints(2), call.ints(3), call.ints(4), call.flag(5));
  });
}

// Schema: self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override (2d).
std::vector<at::Tensor> avg_pool2d(const OpCall& call) {
  const std::optional<std::int64_t> divisor = call.is_none(6) ? std::nullopt : std::optional(call.integer(6));
  return over_planes<2>(call, [&](const at::Tensor& x) {
    return at::avg_pool2d(x, call.ints(1), call.ints(2), call.ints(3), call.flag(4), call.flag(5), divisor);
  });
}

std::vector<at::Tensor> avg_pool1d(const OpCall& call) {
  return over_planes<1>(call, [&](const at::Tensor& x) {
    return at::avg_pool1d(x, call.ints(1), call.ints(2), call.ints(3), call.flag(4), call.flag(5));
  });
}

// Schema: self, output_size.
std::vector<at::Tensor> adaptive_avg_pool2d(const OpCall& call) {
  return over_planes<2>(call, [&](const at::Tensor& x) { return at::adaptive_avg_pool2d(x, call.ints(1)); });
}

std::vector<at::Tensor> adaptive_avg_pool1d(const OpCall& call) {
  return over_planes<1>(call, [&](const at::Tensor& x) { return at::adaptive_avg_pool1d(x, call.ints(1)); });
}

std::vector<at::Tensor> adaptive_max_pool2d(const OpCall& call) {
  const MergedPlanes planes = planes_in_memory_order(call.tensor(0), 2);
  const auto [y, where] = at::adaptive_max_pool2d(planes.merged, call.ints(1));
  return {planes.restore(y), planes.restore(where)};
}

std::vector<at::Tensor> adaptive_max_pool1d(const OpCall& call) {
  const MergedPlanes planes = planes_in_memory_order(call.tensor(0), 1);
  const auto [y, where] = at::adaptive_max_pool1d(planes.merged, call.ints(1));
  return {planes.restore(y), planes.restore(where)};
}

}  // namespace

std::vector<BatchingRule> pool_rules() {
  return {{"aten::max_pool2d", "pool", {{"merged", max_pool2d, nullptr, false, true}}},
          {"aten::max_pool1d", "pool", {{"merged", max_pool1d, nullptr, false, true}}},
          {"aten::avg_pool2d", "pool", {{"merged", avg_pool2d, nullptr}}},
          {"aten::avg_pool1d", "pool", {{"merged", avg_pool1d, nullptr}}},
          {"aten::adaptive_avg_pool2d", "pool", {{"merged", adaptive_avg_pool2d, nullptr}}},
          {"aten::adaptive_avg_pool1d", "pool", {{"merged", adaptive_avg_pool1d, nullptr}}},
          {"aten::adaptive_max_pool2d", "pool", {{"merged", adaptive_max_pool2d, nullptr}}},
          {"aten::adaptive_max_pool1d", "pool", {{"merged", adaptive_max_pool1d, nullptr}}}};
}

}  // namespace hfta::fusion
