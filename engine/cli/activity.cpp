#include "engine/cli/activity.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

/// Says what is done while it lives.
class Doing {
 public:
  Doing(Activity& activity, const std::string& what) : activity_(activity) { activity_.begin(what); }
  ~Doing() { activity_.end(); }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  Activity& activity_;
};

class WatchedArray final : public TrainerArray {
 public:
  WatchedArray(std::unique_ptr<TrainerArray> array, Activity& activity)
      : array_(std::move(array)), activity_(activity) {}

  void admit(int slot, int number, const trials::Params& params) override { array_->admit(slot, number, params); }
  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    array_->insert(slot, number, params, state);
  }
  [[nodiscard]] SlotState extract(int slot) override { return array_->extract(slot); }
  void clear(int slot) override { array_->clear(slot); }
  void resize(int width) override { array_->resize(width); }
  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) override {
    const Doing doing(activity_, "in an epoch");
    return array_->run_epoch([this, &pause] {  // asked once before each step
      activity_.step();
      return pause();
    });
  }
  [[nodiscard]] std::map<std::string, double> test(int slot) override {
    const Doing doing(activity_, "testing");
    return array_->test(slot);
  }
  [[nodiscard]] bool can_borrow() const override { return array_->can_borrow(); }
  void borrow(int lent) override { array_->borrow(lent); }
  [[nodiscard]] ArrayInfo info() const override { return array_->info(); }

 private:
  std::unique_ptr<TrainerArray> array_;
  Activity& activity_;
};

class WatchedTrainer final : public Trainer {
 public:
  WatchedTrainer(Trainer& trainer, Activity& activity) : trainer_(trainer), activity_(activity) {}

  void check(const trials::Params& params) override { trainer_.check(params); }
  [[nodiscard]] DeviceFacts device_facts() const override { return trainer_.device_facts(); }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override { return trainer_.plan(params); }
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) override {
    return trainer_.measure(params, pause);
  }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return trainer_.models(); }
  [[nodiscard]] std::vector<DataFacts> data() const override { return trainer_.data(); }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override {
    return trainer_.recall(partition, choices_json);
  }
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override {
    return trainer_.step_seconds(partition, slots);
  }
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override {
    const Doing doing(activity_, "measuring how to run");
    return std::make_unique<WatchedArray>(trainer_.open(params, width, expected_epochs, pause), activity_);
  }

 private:
  Trainer& trainer_;
  Activity& activity_;
};

}  // namespace

void Activity::begin(const std::string& what) {
  const std::lock_guard guard(mutex_);
  what_ = what;
  began_ = clock_.seconds();
  steps_ = 0;
}

void Activity::end() {
  const std::lock_guard guard(mutex_);
  what_.clear();
}

std::optional<std::string> Activity::text(double least_seconds) const {
  const std::lock_guard guard(mutex_);
  const double seconds = clock_.seconds() - began_;
  if (what_.empty() || seconds < least_seconds) return std::nullopt;
  const std::int64_t steps = steps_;
  return fmt::format("{} on {} for {}{}", what_, device_, duration_text(seconds),
                     steps > 0 ? fmt::format(", {} steps", steps) : "");
}

std::unique_ptr<Trainer> watched(Trainer& trainer, Activity& activity) {
  return std::make_unique<WatchedTrainer>(trainer, activity);
}

}  // namespace hfta::engine
