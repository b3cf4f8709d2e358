// Dropout with counted masks; each slot has its own rate, key and step.
#include <ATen/ATen.h>

#include <algorithm>

#include "fusion/array/counted_mask.hpp"
#include "fusion/array/on_gpu.hpp"
#include "fusion/array/rules.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
void fill(const at::Tensor& mask, const Call& call, const std::vector<double>& rates) {
  const auto slots = static_cast<std::int64_t>(rates.size());
  const std::int64_t per_slot = mask.numel() / slots;
  for (std::int64_t b = 0; b < slots; ++b) {
    const SlotRandom& random = call.context().random[static_cast<std::size_t>(b)];
    fill_dropout_mask(mask.data_ptr<T>() + b * per_slot, static_cast<std::size_t>(per_slot),
                      rates[static_cast<std::size_t>(b)], random.key, static_cast<std::uint32_t>(call.index()),
                      random.step);
  }
}

// Made where x lies if there are kernels for it, else on the host and copied. A slot whose rate is zero gets ones.
at::Tensor mask_like(const at::Tensor& x, const Call& call, const std::vector<double>& rates) {
  const auto options = x.options().memory_format(c10::MemoryFormat::Contiguous);
  if (has_gpu_kernels(x)) {
    const at::Tensor mask = at::empty(x.sizes(), options);
    fill_masks_on_gpu(mask, rates, call.context().random, static_cast<std::uint32_t>(call.index()));
    return mask;
  }
  const at::Tensor mask = at::empty(x.sizes(), options.device(at::kCPU));
  if (mask.scalar_type() == at::kDouble) {
    fill<double>(mask, call, rates);
  } else {
    fill<float>(mask, call, rates);
  }
  return x.is_cpu() ? mask : mask.to(x.device());
}

// Schema: input, p, train.
std::vector<at::Tensor> dropout(const Call& call) {
  const at::Tensor x = call.tensor(0);
  if (!call.context().training || !call.flag(2, true)) return {x};
  const std::vector<double> rates = call.per_slot(1);
  if (std::all_of(rates.begin(), rates.end(), [](double p) { return p <= 0; })) return {x};
  return {x * mask_like(x, call, rates)};
}

}  // namespace

std::vector<Rule> dropout_rules() {
  return {{"aten::dropout", "dropout", {{"counted", dropout, nullptr}}, {}, dropout}};
}

}  // namespace hfta::fusion
