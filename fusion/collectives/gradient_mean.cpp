#include "fusion/collectives/gradient_mean.hpp"

#include <algorithm>
#include <cstddef>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

// What each rank's part counts in the mean.
struct Total {
  double loss = 0, weight = 0;
};

// First the weights, so that gradients travel in the size that the mean has, and overflow only where that does.
template <typename T>
std::vector<Total> totals_of(Collectives& group, std::span<const SlotMean<T>> slots) {
  std::vector<double> sums;
  for (const SlotMean<T>& slot : slots) {
    sums.push_back(slot.weight == 0 ? 0 : slot.loss * slot.weight);
    sums.push_back(slot.weight);
  }
  group.all_reduce(sums);
  std::vector<Total> totals;
  for (std::size_t b = 0; b < slots.size(); ++b) totals.push_back({sums[2 * b], sums[2 * b + 1]});
  return totals;
}

template <typename T>
void scale(const T* __restrict from, T* __restrict to, T factor, std::size_t n) {
  simd::multiversion([&] {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * factor;
  });
}

template <typename T>
void mean_over_ranks(Collectives& group, std::span<SlotMean<T>> slots, std::vector<T>& memory) {
  const std::vector<Total> totals = totals_of<T>(group, slots);
  std::size_t count = 0;
  for (const SlotMean<T>& slot : slots) {
    for (const std::span<T> gradient : slot.gradients) count += gradient.size();
  }
  memory.resize(count);
  T* to = memory.data();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    const double total = totals[b].weight;
    const double part = total == 0 ? 1.0 / group.ranks() : slots[b].weight / total;
    for (const std::span<T> gradient : slots[b].gradients) {
      if (part == 0) {
        std::fill_n(to, gradient.size(), T{0});
      } else {
        scale(gradient.data(), to, static_cast<T>(part), gradient.size());
      }
      to += gradient.size();
    }
  }
  group.all_reduce(std::span<T>(memory));
  const T* from = memory.data();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    slots[b].loss = totals[b].loss / totals[b].weight;  // NaN where nothing counts, as of any mean of nothing
    slots[b].weight = totals[b].weight;
    for (const std::span<T> gradient : slots[b].gradients) {
      std::copy_n(from, gradient.size(), gradient.begin());
      from += gradient.size();
    }
  }
}

}  // namespace

void take_mean(Collectives& group, std::span<SlotMean<float>> slots, std::vector<float>& memory) {
  mean_over_ranks(group, slots, memory);
}
void take_mean(Collectives& group, std::span<SlotMean<double>> slots, std::vector<double>& memory) {
  mean_over_ranks(group, slots, memory);
}

}  // namespace hfta::fusion
