#include <algorithm>

#include "fusion/optimizers/shared_step.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
inline __attribute__((always_inline)) double squares(const T* gradient, std::size_t n) {
  double lanes[8] = {};  // a fixed order of summation, whatever the vector width
  for (std::size_t i = 0; i < n; ++i) lanes[i % 8] += static_cast<double>(gradient[i]) * gradient[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <typename Rule, int form, typename T>
inline __attribute__((always_inline)) void update(const SlotRow<T>& row,
                                                  const typename Rule::template Numbers<T>& numbers, T scale) {
  T* __restrict weight = row.weight;
  T* __restrict first = row.states[0];
  T* __restrict second = row.states[1];
  T* __restrict third = row.states[2];
  const T* __restrict gradient = row.gradient;
  for (std::size_t i = 0; i < row.n; ++i) {
    update_element<Rule, form>(weight[i], gradient[i] * scale, first, second, third, i, numbers);
  }
}

template <typename T>
double factor_for(std::span<const SlotRow<T>> rows, std::optional<double> clip_norm) {
  if (!clip_norm || *clip_norm < 0) return 1;
  double total = 0;
  for (const SlotRow<T>& row : rows) total += squares_of(std::span<const T>(row.gradient, row.n));
  return clip_factor(*clip_norm, total);
}

template <typename Rule, typename T>
void step_row(const SlotRow<T>& row, const typename Rule::template Numbers<T>& numbers, T scale) {
  with_form<Rule, T>(numbers,
                     [&](auto form) { simd::multiversion([&] { update<Rule, form.value>(row, numbers, scale); }); });
}

template <typename T>
SlotRow<T> part_of(const SlotRow<T>& row, std::size_t begin, std::size_t end) {
  SlotRow<T> part = row;
  part.weight += begin;
  part.gradient += begin;
  for (T*& state : part.states) state = state == nullptr ? state : state + begin;
  part.n = end - begin;
  return part;
}

// visit(part of a row) for the elements of a group's rows, which are counted one row behind another; a team shares
// them.
template <typename T, typename Visit>
void share_elements(Team* team, std::span<const SlotRow<T>> rows, std::size_t group, const Visit& visit) {
  constexpr std::int64_t kArrays = 4;  // weight, gradient and states
  std::size_t all = 0;
  for (const SlotRow<T>& row : rows) all += row.group == group ? row.n : 0;
  share(team, stretches_of(static_cast<std::int64_t>(all), kArrays), [&](std::int64_t first, std::int64_t count, int) {
    const auto begin = static_cast<std::size_t>(first), end = begin + static_cast<std::size_t>(count);
    std::size_t at = 0;  // where the row begins
    for (const SlotRow<T>& row : rows) {
      if (row.group != group) continue;
      if (at >= end) break;
      if (at + row.n > begin) visit(part_of(row, std::max(at, begin) - at, std::min(at + row.n, end) - at));
      at += row.n;
    }
  });
}

template <typename T>
void clamp_rows(std::span<const SlotRow<T>> rows, T limit) {
  for (const SlotRow<T>& row : rows) {
    simd::multiversion([&] {
      for (std::size_t i = 0; i < row.n; ++i) {
        const T below = row.weight[i] > limit ? limit : row.weight[i];  // a NaN stays
        row.weight[i] = below < -limit ? -limit : below;
      }
    });
  }
}

// Group by group, so that each group's numbers are computed once, and kept nowhere.
template <typename T>
void step_rows(OptimizerKind kind, std::span<const SlotRow<T>> rows, std::span<const SlotStep> slot, Team* team,
               std::optional<double> factor) {
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    const T scale = static_cast<T>(factor ? *factor : factor_for(rows, slot.front().clip_norm));
    for (std::size_t g = 0; g < slot.size(); ++g) {
      const auto numbers = numbers_of<Rule, T>(slot[g]);
      share_elements(team, rows, g, [&](const SlotRow<T>& part) { step_row<Rule>(part, numbers, scale); });
    }
    if (slot.front().clip_weights) clamp_rows(rows, static_cast<T>(*slot.front().clip_weights));
  });
}

template <typename T>
void step_rows(std::span<const SlotRow<T>> rows, const NumbersView<T>& numbers, std::optional<double> clip_norm) {
  with_rule(numbers.kind(), [&](auto rule) {
    using Rule = decltype(rule);
    const T scale = static_cast<T>(factor_for(rows, clip_norm));
    const auto of_group = numbers.template of<Rule>();
    for (const SlotRow<T>& row : rows) step_row<Rule>(row, of_group[row.group], scale);
  });
}

}  // namespace

double squares_of(std::span<const float> gradient) {
  return simd::multiversion([&] { return squares(gradient.data(), gradient.size()); });
}
double squares_of(std::span<const double> gradient) {
  return simd::multiversion([&] { return squares(gradient.data(), gradient.size()); });
}

void step_slot(OptimizerKind kind, std::span<const SlotRow<float>> rows, std::span<const SlotStep> slot) {
  step_rows(kind, rows, slot, nullptr, {});
}
void step_slot(OptimizerKind kind, std::span<const SlotRow<double>> rows, std::span<const SlotStep> slot) {
  step_rows(kind, rows, slot, nullptr, {});
}
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<float>> rows, std::span<const SlotStep> slot,
                std::optional<double> factor) {
  step_rows(kind, rows, slot, team, factor);
}
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<double>> rows, std::span<const SlotStep> slot,
                std::optional<double> factor) {
  step_rows(kind, rows, slot, team, factor);
}
void step_slot(std::span<const SlotRow<float>> rows, const NumbersView<float>& numbers,
               std::optional<double> clip_norm) {
  step_rows(rows, numbers, clip_norm);
}
void step_slot(std::span<const SlotRow<double>> rows, const NumbersView<double>& numbers,
               std::optional<double> clip_norm) {
  step_rows(rows, numbers, clip_norm);
}

}  // namespace hfta::fusion
