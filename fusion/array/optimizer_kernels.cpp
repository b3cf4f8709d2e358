#include "fusion/array/optimizer_kernels.hpp"

#include <cmath>

// One binary serves every x86-64: the loader picks the widest version the machine can run.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HFTA_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HFTA_WIDE
#endif

namespace hfta::fusion {
namespace {

template <typename T>
inline __attribute__((always_inline)) double squares(const SlotRow<T>& row) {
  double lanes[8] = {};  // a fixed order of summation, whatever the vector width
  for (std::size_t i = 0; i < row.n; ++i) lanes[i % 8] += static_cast<double>(row.gradient[i]) * row.gradient[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <typename T>
inline __attribute__((always_inline)) void sgd(const SlotRow<T>& row, const SlotStep& slot, double factor) {
  const T lr = static_cast<T>(slot.hyper.lr), decay = static_cast<T>(slot.hyper.weight_decay);
  const T mu = static_cast<T>(slot.hyper.momentum), damp = static_cast<T>(1 - slot.hyper.dampening);
  const T scale = static_cast<T>(factor);
  const bool nesterov = slot.hyper.nesterov, begins = slot.step == 1;
  T* __restrict w = row.weight;
  T* __restrict m = row.first;
  const T* __restrict g = row.gradient;
  if (mu == T{0}) {
    for (std::size_t i = 0; i < row.n; ++i) w[i] -= lr * (g[i] * scale + decay * w[i]);
    return;
  }
  for (std::size_t i = 0; i < row.n; ++i) {
    const T d = g[i] * scale + decay * w[i];
    const T buffer = begins ? d : mu * m[i] + damp * d;
    m[i] = buffer;
    w[i] -= lr * (nesterov ? d + mu * buffer : buffer);
  }
}

template <typename T>
inline __attribute__((always_inline)) void adam(const SlotRow<T>& row, const SlotStep& slot, double factor,
                                                bool decoupled) {
  const OptimizerHyper& h = slot.hyper;
  const T shrink = decoupled ? static_cast<T>(1 - h.lr * h.weight_decay) : T{1};
  const T decay = decoupled ? T{0} : static_cast<T>(h.weight_decay);
  const T b1 = static_cast<T>(1 - h.beta1), b2 = static_cast<T>(h.beta2), b2_rest = static_cast<T>(1 - h.beta2);
  const T eps = static_cast<T>(h.eps), size = static_cast<T>(adam_step_size(slot));
  const T root = static_cast<T>(adam_root_correction(slot)), scale = static_cast<T>(factor);
  T* __restrict w = row.weight;
  T* __restrict m = row.first;
  T* __restrict v = row.second;
  const T* __restrict g = row.gradient;
  for (std::size_t i = 0; i < row.n; ++i) {
    const T d = g[i] * scale + decay * w[i];
    const T first = m[i] + b1 * (d - m[i]);
    const T second = v[i] * b2 + b2_rest * d * d;
    m[i] = first;
    v[i] = second;
    w[i] = w[i] * shrink - size * (first / (std::sqrt(second) / root + eps));
  }
}

}  // namespace

double adam_step_size(const SlotStep& slot) {
  return slot.hyper.lr / (1 - std::pow(slot.hyper.beta1, static_cast<double>(slot.step)));
}

double adam_root_correction(const SlotStep& slot) {
  return std::sqrt(1 - std::pow(slot.hyper.beta2, static_cast<double>(slot.step)));
}

HFTA_WIDE double sum_of_squares(const SlotRow<float>& row) { return squares(row); }
HFTA_WIDE double sum_of_squares(const SlotRow<double>& row) { return squares(row); }
HFTA_WIDE void sgd_row(const SlotRow<float>& row, const SlotStep& slot, double factor) { sgd(row, slot, factor); }
HFTA_WIDE void sgd_row(const SlotRow<double>& row, const SlotStep& slot, double factor) { sgd(row, slot, factor); }
HFTA_WIDE void adam_row(const SlotRow<float>& row, const SlotStep& slot, double factor, bool decoupled_decay) {
  adam(row, slot, factor, decoupled_decay);
}
HFTA_WIDE void adam_row(const SlotRow<double>& row, const SlotStep& slot, double factor, bool decoupled_decay) {
  adam(row, slot, factor, decoupled_decay);
}

}  // namespace hfta::fusion
