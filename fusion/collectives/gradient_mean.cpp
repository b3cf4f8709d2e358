#include "fusion/collectives/gradient_mean.hpp"

#include <algorithm>
#include <cstddef>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

// Losses of each slot's whole batch. They come first, so that gradients travel in the size that the mean has, and
// overflow only where that does. A batch in which nothing counts has the loss NaN, as any mean of nothing.
std::vector<BatchLoss> whole_batches(Collectives& group, std::span<const BatchLoss> parts) {
  std::vector<double> sums;
  for (const BatchLoss& part : parts) {
    sums.push_back(part.weight == 0 ? 0 : part.mean * part.weight);
    sums.push_back(part.weight);
  }
  group.all_reduce(sums);
  std::vector<BatchLoss> whole;
  for (std::size_t b = 0; b < parts.size(); ++b) whole.push_back({sums[2 * b] / sums[2 * b + 1], sums[2 * b + 1]});
  return whole;
}

double share_of(const Collectives& group, double weight, const BatchLoss& whole) {
  return whole.weight == 0 ? 1.0 / group.ranks() : weight / whole.weight;
}

// A share of 0 gives 0, even for values that are infinite or NaN.
template <typename T>
void scale(T* values, double share, std::size_t n) {
  if (share == 0) {
    std::fill_n(values, n, T{0});
    return;
  }
  const T factor = static_cast<T>(share);
  simd::multiversion([&] {
    for (std::size_t i = 0; i < n; ++i) values[i] *= factor;
  });
}

template <typename T>
void mean_over_ranks(Collectives& group, std::span<SlotMean<T>> slots, std::vector<T>& memory) {
  std::vector<BatchLoss> parts;
  std::size_t count = 0;
  for (const SlotMean<T>& slot : slots) {
    parts.push_back({slot.loss, slot.weight});
    for (const std::span<T> gradient : slot.gradients) count += gradient.size();
  }
  const std::vector<BatchLoss> whole = whole_batches(group, parts);
  memory.resize(count);
  T* to = memory.data();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    const double share = share_of(group, slots[b].weight, whole[b]);
    for (const std::span<T> gradient : slots[b].gradients) {
      std::copy(gradient.begin(), gradient.end(), to);
      scale(to, share, gradient.size());
      to += gradient.size();
    }
  }
  group.all_reduce(std::span<T>(memory));
  const T* from = memory.data();
  for (std::size_t b = 0; b < slots.size(); ++b) {
    slots[b].loss = whole[b].mean;
    slots[b].weight = whole[b].weight;
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

template <typename T>
MeanInPieces<T>::MeanInPieces(Collectives& group) : group_(group) {
  if (group.waits_for_network()) beside_ = std::make_unique<CallsInOrder>();
}

template <typename T>
void MeanInPieces<T>::make(std::function<void()> call) {
  ++asked_;
  if (beside_ == nullptr) return call();
  beside_->add(std::move(call));
}

template <typename T>
bool MeanInPieces<T>::is_made(std::size_t call, bool wait) {
  if (beside_ == nullptr) return true;
  if (wait) beside_->wait_for(call + 1);
  return beside_->made() > call;
}

template <typename T>
void MeanInPieces<T>::begin(const BatchLoss& own) {
  begun_ = asked_;
  added_ = taken_ = 0;
  make([this, own] {
    whole_ = whole_batches(group_, std::span(&own, 1)).front();
    share_ = share_of(group_, own.weight, whole_);
  });
}

template <typename T>
void MeanInPieces<T>::add(std::span<const std::span<const T>> gradients) {
  if (added_ == pieces_.size()) pieces_.emplace_back();
  std::vector<T>& piece = pieces_[added_++];
  piece.clear();
  for (const std::span<const T> one : gradients) piece.insert(piece.end(), one.begin(), one.end());
  make([this, &piece] {
    scale(piece.data(), share_, piece.size());
    group_.all_reduce(std::span<T>(piece));
  });
}

template <typename T>
void MeanInPieces<T>::take(bool all, const Take& take) {
  for (; taken_ < added_ && is_made(begun_ + 1 + taken_, all); ++taken_) take(taken_, pieces_[taken_]);
}

template <typename T>
BatchLoss MeanInPieces<T>::end() {
  static_cast<void>(is_made(begun_, true));
  return whole_;
}

template class MeanInPieces<float>;
template class MeanInPieces<double>;

}  // namespace hfta::fusion
