#pragma once
/// TrainerArray over a fusion::Array.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/fused/choices_json.hpp"
#include "engine/fused/feature_cache.hpp"
#include "engine/fused/lent_ways.hpp"
#include "engine/fused/trainer_parts.hpp"
#include "engine/trainer.hpp"
#include "fusion/array.hpp"
#include "fusion/epochs.hpp"

namespace hfta::engine {

class FusedArray final : public TrainerArray {
 public:
  /// Runs as the choices have it; `decided`: the width to choose for. `data`: StudyData::trained(). It and
  /// `parts` must outlive this.
  FusedArray(TrainerParts& parts, const PreparedTask& task, const TaskData& data, const KeptChoices& kept, int decided,
             int width);

  void admit(int slot, int number, const trials::Params& params) override;
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override;
  [[nodiscard]] SlotState extract(int slot) override;
  void clear(int slot) override;
  void resize(int width) override;
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) override;
  [[nodiscard]] std::map<std::string, double> test(int slot) override;
  [[nodiscard]] bool can_borrow() const override { return lent_ways_ != nullptr; }
  void borrow(int lent) override;
  [[nodiscard]] ArrayInfo info() const override;

 private:
  [[nodiscard]] fusion::SlotInit init_for(int slot, int number, const trials::Params& params);
  void run_on_threads();
  /// Notes the bytes that stages hold. To be called after each epoch, which all ranks end together.
  void note_held();
  /// The number that epochs_ has for the data of the task's fold.
  [[nodiscard]] int set_of(const PreparedTask& task);

  TrainerParts& parts_;
  const TaskData& data_;
  KeptChoices kept_;
  std::map<std::string, MemoryNeed> needs_;  // by Lowering::to_text()
  std::string label_;
  bool cpu_;
  fusion::Array array_;
  std::unique_ptr<LentWays> lent_ways_;
  int lent_ = 0;
  fusion::Epochs epochs_;
  std::map<int, int> sets_;           // by fold
  bool counts_parameters_;            // their number is an objective
  std::map<int, double> parameters_;  // by slot, of the trial in it
  std::optional<std::int64_t> held_;  // bytes; of a pipeline, once an epoch has ended
};

}  // namespace hfta::engine
