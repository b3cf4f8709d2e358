#include "fusion/optimizers/slot_step.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
inline __attribute__((always_inline)) double squares(const SlotRow<T>& row) {
  double lanes[8] = {};  // a fixed order of summation, whatever the vector width
  for (std::size_t i = 0; i < row.n; ++i) lanes[i % 8] += static_cast<double>(row.gradient[i]) * row.gradient[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <typename T>
inline __attribute__((always_inline)) void sgd(const SlotRow<T>& row, const SgdNumbers<T>& k) {
  T* __restrict weight = row.weight;
  T* __restrict buffer = row.first;
  const T* __restrict gradient = row.gradient;
  if (k.momentum == T{0}) {
    for (std::size_t i = 0; i < row.n; ++i) plain_sgd_element(weight[i], gradient[i], k);
  } else {
    for (std::size_t i = 0; i < row.n; ++i) sgd_element(weight[i], gradient[i], buffer[i], k);
  }
}

template <typename T>
inline __attribute__((always_inline)) void adam(const SlotRow<T>& row, const AdamNumbers<T>& k) {
  T* __restrict weight = row.weight;
  T* __restrict first = row.first;
  T* __restrict second = row.second;
  const T* __restrict gradient = row.gradient;
  for (std::size_t i = 0; i < row.n; ++i) adam_element(weight[i], gradient[i], first[i], second[i], k);
}

}  // namespace

std::vector<const char*> state_names(OptimizerKind kind) {
  if (kind == OptimizerKind::kSgd) return {"momentum_buffer"};
  return {"exp_avg", "exp_avg_sq"};
}

double adam_step_size(const SlotStep& slot) {
  return slot.hyper.lr / (1 - std::pow(slot.hyper.beta1, static_cast<double>(slot.step)));
}

double adam_root_correction(const SlotStep& slot) {
  return std::sqrt(1 - std::pow(slot.hyper.beta2, static_cast<double>(slot.step)));
}

template <typename T>
SgdNumbers<T> sgd_numbers(const SlotStep& slot, double factor) {
  const OptimizerHyper& h = slot.hyper;
  return {static_cast<T>(h.lr),
          static_cast<T>(h.weight_decay),
          static_cast<T>(h.momentum),
          static_cast<T>(1 - h.dampening),
          static_cast<T>(factor),
          h.nesterov,
          slot.step == 1};
}

template <typename T>
AdamNumbers<T> adam_numbers(const SlotStep& slot, double factor, bool decoupled_decay) {
  const OptimizerHyper& h = slot.hyper;
  return {decoupled_decay ? static_cast<T>(1 - h.lr * h.weight_decay) : T{1},
          decoupled_decay ? T{0} : static_cast<T>(h.weight_decay),
          static_cast<T>(1 - h.beta1),
          static_cast<T>(h.beta2),
          static_cast<T>(1 - h.beta2),
          static_cast<T>(h.eps),
          static_cast<T>(adam_step_size(slot)),
          static_cast<T>(adam_root_correction(slot)),
          static_cast<T>(factor)};
}

template SgdNumbers<float> sgd_numbers(const SlotStep&, double);
template SgdNumbers<double> sgd_numbers(const SlotStep&, double);
template AdamNumbers<float> adam_numbers(const SlotStep&, double, bool);
template AdamNumbers<double> adam_numbers(const SlotStep&, double, bool);

namespace {

double sum_of_squares(const SlotRow<float>& row) {
  return simd::multiversion([&] { return squares(row); });
}
double sum_of_squares(const SlotRow<double>& row) {
  return simd::multiversion([&] { return squares(row); });
}
void sgd_row(const SlotRow<float>& row, const SgdNumbers<float>& numbers) {
  simd::multiversion([&] { sgd(row, numbers); });
}
void sgd_row(const SlotRow<double>& row, const SgdNumbers<double>& numbers) {
  simd::multiversion([&] { sgd(row, numbers); });
}
void adam_row(const SlotRow<float>& row, const AdamNumbers<float>& numbers) {
  simd::multiversion([&] { adam(row, numbers); });
}
void adam_row(const SlotRow<double>& row, const AdamNumbers<double>& numbers) {
  simd::multiversion([&] { adam(row, numbers); });
}

template <typename T>
double factor_for(std::span<const SlotRow<T>> rows, double clip_norm) {
  if (clip_norm < 0) return 1;
  double total = 0;
  for (const SlotRow<T>& row : rows) total += sum_of_squares(row);
  return clip_factor(clip_norm, total);
}

template <typename T>
void step_rows(std::span<const SlotRow<T>> rows, SgdNumbers<T> numbers, double clip_norm) {
  numbers.scale = static_cast<T>(factor_for(rows, clip_norm));
  for (const SlotRow<T>& row : rows) sgd_row(row, numbers);
}

template <typename T>
void step_rows(std::span<const SlotRow<T>> rows, AdamNumbers<T> numbers, double clip_norm) {
  numbers.scale = static_cast<T>(factor_for(rows, clip_norm));
  for (const SlotRow<T>& row : rows) adam_row(row, numbers);
}

template <typename T>
void step_rows(OptimizerKind kind, std::span<const SlotRow<T>> rows, const SlotStep& slot) {
  const double clip_norm = slot.clip_norm.value_or(-1);
  if (kind == OptimizerKind::kSgd) {
    step_rows(rows, sgd_numbers<T>(slot, 1), clip_norm);
  } else {
    step_rows(rows, adam_numbers<T>(slot, 1, kind == OptimizerKind::kAdamW), clip_norm);
  }
}

}  // namespace

void step_slot(OptimizerKind kind, std::span<const SlotRow<float>> rows, const SlotStep& slot) {
  step_rows(kind, rows, slot);
}
void step_slot(OptimizerKind kind, std::span<const SlotRow<double>> rows, const SlotStep& slot) {
  step_rows(kind, rows, slot);
}
void step_slot(std::span<const SlotRow<float>> rows, SgdNumbers<float> numbers, double clip_norm) {
  step_rows(rows, numbers, clip_norm);
}
void step_slot(std::span<const SlotRow<double>> rows, SgdNumbers<double> numbers, double clip_norm) {
  step_rows(rows, numbers, clip_norm);
}
void step_slot(std::span<const SlotRow<float>> rows, AdamNumbers<float> numbers, double clip_norm) {
  step_rows(rows, numbers, clip_norm);
}
void step_slot(std::span<const SlotRow<double>> rows, AdamNumbers<double> numbers, double clip_norm) {
  step_rows(rows, numbers, clip_norm);
}

}  // namespace hfta::fusion
