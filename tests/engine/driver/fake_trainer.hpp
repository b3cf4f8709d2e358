#pragma once
/// A fake trainer: curves are a pure function of a trial's parameters, number and training state, and the
/// contract of TrainerArray is checked at every call.

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "engine/rank_trainer.hpp"

namespace hfta::engine::testing {

/// What a fake machine does and has done; shared by its trainers.
struct World {
  // What it is to do.
  int width = 8;          ///< PartitionPlan::width.
  std::set<int> diverge;  ///< Trials whose train_loss is NaN from `diverge_at` on; {-1}: all.
  int diverge_at = 1;
  double diverged = std::numeric_limits<double>::quiet_NaN();
  std::string diverging_metric = "train_loss";
  bool has_test = true;
  bool counts_parameters = false;  ///< Records `parameters` too: better trials have more.
  bool shows_best = false;         ///< Metrics are the best ones so far.
  std::vector<ModelFacts> models;
  std::function<void(int)> after_epochs;  ///< Called after each run_epoch of an array, with the number of calls so far.
  std::string partition_by = "hidden";
  int steps = 1;                                                ///< Of an epoch: it can be paused between two.
  int memory = 1 << 30;                                         ///< Slots for which memory suffices.
  std::set<int> too_large;                                      ///< Trials that run out of memory even alone.
  std::function<void(const std::string& device)> before_epoch;  ///< May throw, as a device does that fails.
  /// May throw, as `before_epoch`. `call`: the name of another method of TrainerArray.
  std::function<void(const std::string& device, const std::string& call)> before_call;
  std::map<std::string, std::string> recalled;  ///< Choices by partition, as last told.
  std::map<std::string, std::string> choices;   ///< ArrayInfo::choices_json by device, if not the same
  std::map<std::pair<std::string, std::string>, std::string> recalled_on;  ///< `recalled`, by device and partition.
  int threads = 0;                 ///< Of each device, which its arrays may borrow; 0: none lends any.
  double rank_speed = 1;           ///< As a rank, in steps of a slot per millisecond.
  std::string undivided;           ///< Why its batches cannot be divided; "": they can.
  double exchange = 0;             ///< Seconds of an exchange of one slot's gradients.
  std::optional<RankPlans> ranks;  ///< How its arrays are shared; unset: that is to be found out.
  bool batches_whole = false;      ///< RankTrainer::kept_batches_whole
  int unlike_slots = 0;            ///< Times of so many slots more than were asked for.
  std::int64_t rank_batch = 60;    ///< Samples of a batch that ranks time.
  bool width_matters = false;      ///< Curves depend a little on the array's width, as sums do on a real device.

  // What it has done.
  int runs = 0, opens = 0, admits = 0, inserts = 0, extracts = 0, resizes = 0, pauses = 0;
  long slot_epochs = 0;   ///< Width of every epoch run, added up: what the device was busy with.
  long trial_epochs = 0;  ///< Of these, slots that held a trial.
  int tests = 0;
  int tries = 0;                                      ///< Divisions tried.
  std::vector<std::size_t> timed;                     ///< How many sizes of batches, at each call of rank_times.
  bool cut_short = false;                             ///< What divide() was told.
  std::vector<std::pair<std::string, int>> borrowed;  ///< Device and what it was lent, whenever that changed.
  int copies = 0;                                     ///< States inserted that another trial had trained.
  std::vector<trials::Params> checked;
  std::mutex mutex;
};

/// Its trainers are as fast as their `delay`, which nothing may depend on.
class FakeTrainer final : public RankTrainer {
 public:
  FakeTrainer(World& world, std::string device, int delay_us = 0);
  void check(const trials::Params& params) override;
  [[nodiscard]] DeviceFacts device_facts() const override { return {device_, 0, 1, {}, world_.threads}; }
  [[nodiscard]] std::string partition(const trials::Params& params) const;
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params&, const Pause&) override {
    return {{"fake", 0.001, 16000, true, "LibTorch runs aten::fake", ""},
            {"slower", 0.002, 8000, false, "", ""},
            {"other", 0, 0, false, "", "no fake"}};
  }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return world_.models; }
  [[nodiscard]] std::vector<DataFacts> data() const override { return {}; }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override;
  [[nodiscard]] int planned_width(const trials::Params&) override { return world_.width; }
  [[nodiscard]] std::string choose(const trials::Params&, double, const Pause&) override { return "{}"; }
  [[nodiscard]] std::string why_not_divided(const trials::Params&, std::span<const int>) override {
    return world_.undivided;
  }
  [[nodiscard]] std::optional<RankPlans> division(const trials::Params&) override { return world_.ranks; }
  [[nodiscard]] bool kept_batches_whole(const trials::Params&) override { return world_.batches_whole; }
  [[nodiscard]] RankTimes rank_times(const trials::Params& params, int width, bool batches) override;
  [[nodiscard]] double exchange_seconds(const trials::Params&, int width) override { return world_.exchange * width; }
  [[nodiscard]] double tried_seconds(const trials::Params& params, int width, const Division& division,
                                     int steps) override;
  [[nodiscard]] double window(const trials::Params&) override { return 0.01; }
  void divide(const trials::Params&, const RankPlans& plans, const Pause& pause) override {
    world_.ranks = plans;
    world_.cut_short = pause();
  }
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

 private:
  World& world_;
  std::string device_;
  int delay_us_;
};

}  // namespace hfta::engine::testing
