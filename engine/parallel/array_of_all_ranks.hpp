#pragma once
/// Arrays of which every rank has all slots. Internal to this folder.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/parallel/ranks.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// All ranks fill, empty and run the array; derived classes say which rank gives states and metrics. Every rank has the
/// losses of all samples, which have to be the same bits.
class ArrayOfAllRanks : public TrainerArray {
 public:
  ArrayOfAllRanks(Ranks& ranks, std::unique_ptr<TrainerArray> own) : ranks_(ranks), own_(std::move(own)) {}
  ~ArrayOfAllRanks() override;
  ArrayOfAllRanks(const ArrayOfAllRanks&) = delete;
  ArrayOfAllRanks& operator=(const ArrayOfAllRanks&) = delete;

  void admit(int slot, int number, const trials::Params& params) final;
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) final;
  void clear(int slot) final;
  void resize(int width) final;
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) final;
  [[nodiscard]] bool can_borrow() const final { return false; }
  void borrow(int /*lent*/) final {}
  [[nodiscard]] ArrayInfo info() const final;

 protected:
  [[nodiscard]] Ranks& ranks() { return ranks_; }
  /// Rank 0's array.
  [[nodiscard]] TrainerArray& own() { return *own_; }

 private:
  Ranks& ranks_;
  std::unique_ptr<TrainerArray> own_;
};

}  // namespace hfta::engine
