#pragma once
/// A tensor as an element of an update rule (fusion/optimizers/element.hpp): what a rule does to one number, to all of
/// many slots.

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace hfta::fusion {

/// `numbers`, [c], as [c, 1, ...], which broadcasts against `like`, [c, ...].
inline at::Tensor by_slot(const at::Tensor& numbers, const at::Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape.front() = numbers.size(0);
  return numbers.view(shape);
}

struct SlotTensor {
  at::Tensor value;

  explicit SlotTensor(at::Tensor tensor) : value(std::move(tensor)) {}
  explicit SlotTensor(double number) : value(at::scalar_tensor(number, at::kDouble)) {}  // takes the other's type
};

inline SlotTensor operator+(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value + b.value); }
inline SlotTensor operator-(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value - b.value); }
inline SlotTensor operator*(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value * b.value); }
inline SlotTensor operator/(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value / b.value); }
inline SlotTensor operator-(const SlotTensor& a) { return SlotTensor(a.value.neg()); }
inline SlotTensor operator<(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value.lt(b.value)); }
inline SlotTensor operator!=(const SlotTensor& a, const SlotTensor& b) { return SlotTensor(a.value.ne(b.value)); }

inline SlotTensor fma(const SlotTensor& a, const SlotTensor& b, const SlotTensor& c) { return a * b + c; }
inline SlotTensor sqrt(const SlotTensor& x) { return SlotTensor(x.value.sqrt()); }
inline SlotTensor abs(const SlotTensor& x) { return SlotTensor(x.value.abs()); }
inline SlotTensor maximum(const SlotTensor& a, const SlotTensor& b) {
  return SlotTensor(at::maximum(a.value, b.value));
}
inline SlotTensor select(const SlotTensor& condition, const SlotTensor& yes, const SlotTensor& no) {
  return SlotTensor(at::where(condition.value, yes.value, no.value));
}
inline SlotTensor sign(const SlotTensor& x) { return SlotTensor(at::where(x.value.isnan(), x.value, x.value.sign())); }

}  // namespace hfta::fusion
