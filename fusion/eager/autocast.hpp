#pragma once
/// bfloat16 for the ops that LibTorch's autocast chooses.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// While this object lives, ops that this thread calls on `device` run as under torch.autocast(device, torch.bfloat16,
/// cache_enabled=False), if `precision` is kBfloat16; else nothing changes. For a forward: its backward finds the types
/// that it needs by itself.
class Autocast {
 public:
  Autocast(Precision precision, const at::Device& device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  at::DeviceType device_;
  bool enabled_ = false, cache_ = false;  // settings to be restored
  at::ScalarType dtype_ = at::kFloat;
};

/// `t` as autocast hands it to a product or a convolution: bfloat16 while an Autocast is on, unless it is float64 or of
/// whole numbers. Meant for calls that LibTorch leaves off that list on some device: at::convolution on a CPU.
[[nodiscard]] at::Tensor as_multiplied(const at::Tensor& t);

/// Whether as_multiplied() would give `t` as bfloat16.
[[nodiscard]] bool is_lowered(const at::Tensor& t);

/// `t` as autocast hands it to losses, and on a GPU to normalisations: float32 in place of bfloat16 while an Autocast
/// is on.
[[nodiscard]] at::Tensor as_normalised(const at::Tensor& t);

/// `t` in float32 in place of bfloat16: complex numbers are made of that.
[[nodiscard]] at::Tensor in_float32(const at::Tensor& t);

/// op.callBoxed, for arguments on `device`; where an Autocast is on, the op's types are chosen before anything else is
/// done: float32 if it `makes_complex` numbers, for which there is no bfloat16. Under functorch's batching LibTorch
/// would take some ops apart first (addmm: a product, and a sum), and choose for the parts.
void call_boxed(const c10::OperatorHandle& op, at::DeviceType device, bool makes_complex, torch::jit::Stack& stack);

}  // namespace hfta::fusion
