#pragma once
/// The rest of one chunk's epoch, step by step: the part of Epochs::run that belongs to one chunk.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "fusion/epochs.hpp"

namespace hfta::fusion {

/// The chunk's slots may be at different steps of the epoch. Those that are ahead wait outside the array until the
/// others have come to them. Refers to everything that it is made from. Used by one thread at a time.
class Epochs::Run {
 public:
  /// REQUIRES an occupied slot in the chunk.
  Run(const Epochs& epochs, Array& array, const Orders& orders, int chunk);

  /// Steps of the epoch that are done.
  [[nodiscard]] std::int64_t at() const { return at_; }
  /// Whether a slot takes its samples in the order of that key.
  [[nodiscard]] bool uses(const OrderKey& key) const;
  /// One step of all slots that have come here. `prepared`: the step's samples by order, if they were prepared for all
  /// slots; null: slots take their own.
  void step(const Prepared* prepared);
  /// All slots are in the array again, and know how far they are.
  void pause();
  /// Ends the epoch of every slot. Results without evaluation, in order of slot.
  [[nodiscard]] std::vector<EpochResult> finish();

 private:
  /// A slot that waits outside the array.
  struct Ahead {
    int slot;
    std::int64_t place;  ///< Steps of the epoch that it has done.
    SlotInit init;
    StateBytes state;
  };

  [[nodiscard]] int end() const;
  [[nodiscard]] double samples_before(std::int64_t step) const;
  [[nodiscard]] std::vector<at::Tensor> on_host() const;
  [[nodiscard]] double sum_of(const at::Tensor& sums, std::int64_t row, int slot) const;
  void take_out(int slot);
  void meet();
  void take_sums(int slot);
  void deal_samples();
  void set_rates();

  const Epochs& epochs_;
  Array& array_;
  const Orders& orders_;
  int chunk_, first_;
  std::int64_t at_;
  std::vector<int> occupied_;
  std::vector<Ahead> ahead_;
  Batch batch_;
  std::vector<OrderKey> part_keys_;  ///< By part of batch_.
  std::vector<double> rates_;        ///< Rates as Array::step takes them.
  std::vector<at::Tensor>
      losses_;  ///< By phase: sums over the epoch's batches so far, [2, c], as Array::step adds them.
};

}  // namespace hfta::fusion
