#pragma once
/// Ranks that have each run some samples of a batch agree on its loss and gradients.

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fusion/collectives.hpp"
#include "fusion/collectives/calls_in_order.hpp"

namespace hfta::fusion {

/// A batch's mean loss, NaN where nothing counts, and what the mean was divided by.
struct BatchLoss {
  double mean = 0, weight = 0;
};

/// A rank's mean loss and gradients of one slot over its own samples; replaced by the means over all ranks' samples.
template <typename T>
struct SlotMean {
  double loss = 0;
  double weight = 0;                    ///< What the mean was divided by; 0: nothing of these samples counts.
  std::vector<std::span<T>> gradients;  ///< Gradients, in one order and of equal sizes at all ranks.
};

/// The mean of the ranks' losses and gradients by their weights w, sum w_r g_r / sum w_r, and the sum of weights. A
/// rank whose weight is 0 adds nothing, whatever it has, unless all are 0: then the mean is that of what the ranks
/// have. Equal bits at every rank. `memory`: grows to the size of all gradients, and may be passed again.
void take_mean(Collectives& group, std::span<SlotMean<float>> slots, std::vector<float>& memory);
void take_mean(Collectives& group, std::span<SlotMean<double>> slots, std::vector<double>& memory);

/// take_mean() of one slot, in pieces, while its backward goes on; to the same bits. Where calls wait for a network, a
/// thread makes them meanwhile. All ranks tell the same pieces in the same order. One slot at a time; throws as
/// Collectives. T: float, double.
template <typename T>
class MeanInPieces {
 public:
  /// The piece of that number, from 0, has become the mean.
  using Take = std::function<void(std::size_t piece, std::span<const T> mean)>;

  explicit MeanInPieces(Collectives& group);

  /// `own`: the loss of this rank's part of the batch.
  void begin(const BatchLoss& own);
  /// Copies the gradients, one behind another, as the next piece.
  void add(std::span<const std::span<const T>> gradients);
  /// Gives the pieces that are there and were not given yet, in order; `all`: waits for those that are not there.
  void take(bool all, const Take& take);
  /// Call it after the last piece. Returns the whole batch's loss.
  [[nodiscard]] BatchLoss end();

 private:
  void make(std::function<void()> call);
  [[nodiscard]] bool is_made(std::size_t call, bool wait);

  Collectives& group_;
  BatchLoss whole_;
  double share_ = 0;                               // share of this rank's gradients in the mean
  std::deque<std::vector<T>> pieces_;              // memory that is used again
  std::size_t begun_ = 0, added_ = 0, taken_ = 0;  // calls before this slot's; its pieces
  std::size_t asked_ = 0;                          // calls, of all slots
  std::unique_ptr<CallsInOrder> beside_;           // null: calls are made at once
};

}  // namespace hfta::fusion
