#include "fusion/eager/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace hfta::fusion {

namespace autocast = at::autocast;

Autocast::Autocast(Precision precision, const at::Device& device)
    : on_(precision == Precision::kBfloat16), device_(device.type()) {
  if (!on_) return;
  enabled_ = autocast::is_autocast_enabled(device_);
  cache_ = autocast::is_autocast_cache_enabled();
  dtype_ = autocast::get_autocast_dtype(device_);
  // A cast weight that is kept would be another step's: weights change in place, steps are captured and replayed, and
  // threads go from chunk to chunk.
  autocast::set_autocast_cache_enabled(false);
  autocast::set_autocast_dtype(device_, at::kBFloat16);
  autocast::set_autocast_enabled(device_, true);
}

Autocast::~Autocast() {
  if (!on_) return;
  autocast::set_autocast_enabled(device_, enabled_);
  autocast::set_autocast_dtype(device_, dtype_);
  autocast::set_autocast_cache_enabled(cache_);
}

at::Tensor as_multiplied(const at::Tensor& t) {
  if (!t.defined()) return t;
  const at::DeviceType device = t.device().type();
  if (!autocast::is_autocast_enabled(device)) return t;
  return autocast::cached_cast(autocast::get_autocast_dtype(device), t, device);
}

bool is_lowered(const at::Tensor& t) {
  return t.scalar_type() == at::kFloat && autocast::is_autocast_enabled(t.device().type());
}

at::Tensor as_normalised(const at::Tensor& t) {
  return autocast::is_autocast_enabled(t.device().type()) ? in_float32(t) : t;
}

at::Tensor in_float32(const at::Tensor& t) { return t.scalar_type() == at::kBFloat16 ? t.to(at::kFloat) : t; }

namespace {

void raise_to_float32(torch::jit::Stack& stack) {
  for (c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) value = in_float32(value.toTensor());
  }
}

}  // namespace

void call_boxed(const c10::OperatorHandle& op, at::DeviceType device, bool makes_complex, torch::jit::Stack& stack) {
  if (!autocast::is_autocast_enabled(device)) return op.callBoxed(stack);
  if (makes_complex) raise_to_float32(stack);
  const at::DispatchKey key = autocast::get_autocast_dispatch_key_from_device_type(device);
  if (!op.hasKernelForDispatchKey(key)) return op.callBoxed(stack);
  op.callBoxedForDispatchKey(key, stack);
}

}  // namespace hfta::fusion
