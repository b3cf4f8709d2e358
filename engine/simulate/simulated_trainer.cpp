#include "engine/simulate/simulated_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"

namespace hfta::engine {
namespace {

constexpr int kWidth = 32;

// The training state of a simulated trial.
struct Progress {
  int number = 0, epoch = 0;
};

double cost_of(const std::string& partition) {
  Fnv1a hash;
  hash.add(partition);
  return 0.5 + 1.5 * CountedRandom(hash.value(), Stream::kSimulation, 0).uniform();
}

// Seconds of an epoch at speed 1, without jitter.
double epoch_seconds(const std::string& partition, int slots, const SimulatedDevice& device, int lent) {
  const double fixed = device.threads > 0 ? 0 : device.fixed;
  const double speed = device.threads > 0 ? speed_of_threads(device.threads + lent, std::max(1, slots)) : 1;
  return cost_of(partition) * (fixed + (1 - fixed) * slots / kWidth) / speed;
}

class SimulatedArray final : public TrainerArray {
 public:
  SimulatedArray(const Curves& curves, SimulatedTime& time, const SimulatedDevice& device, std::string partition,
                 int width)
      : curves_(curves),
        time_(time),
        device_(device),
        partition_(std::move(partition)),
        slots_(static_cast<std::size_t>(width)) {}

  void admit(int slot, int number, const trials::Params& params) override { put(slot, {{number, 0}, params}); }

  void insert(int slot, int number, const trials::Params& params, const SlotState& state) override {
    Progress progress;
    if (state.size() != sizeof progress) {
      throw Error(ErrorKind::kStorage, fmt::format("{}: found a state of {} bytes, wanted {}, as a simulation writes",
                                                   device_.name, state.size(), sizeof progress));
    }
    std::memcpy(&progress, state.data(), sizeof progress);
    progress.number = number;  // a copy has another trial's number
    put(slot, {progress, params});
  }

  [[nodiscard]] SlotState extract(int slot) override {
    SlotState state(sizeof(Progress));
    std::memcpy(state.data(), &held(slot).progress, sizeof(Progress));
    return state;
  }

  void clear(int slot) override {
    (void)held(slot);
    slots_[static_cast<std::size_t>(slot)].reset();
  }

  void resize(int width) override { slots_.resize(static_cast<std::size_t>(width)); }

  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& /*pause*/) override {
    std::vector<SlotReport> reports;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i]) continue;
      Progress& progress = slots_[i]->progress;
      ++progress.epoch;
      reports.push_back(
          {static_cast<int>(i), progress.epoch, curves_.at(progress.number, slots_[i]->params, progress.epoch)});
    }
    CountedRandom random(0, Stream::kSimulation, 3, static_cast<std::uint64_t>(epochs_++));
    const double jitter = 0.9 + 0.2 * random.uniform();
    const std::size_t slots = device_.threads > 0 ? reports.size() : slots_.size();  // a CPU skips empty ones
    const double seconds = epoch_seconds(partition_, static_cast<int>(slots), device_, lent_);
    time_.spend(seconds * jitter / device_.speed());
    return reports;
  }

  [[nodiscard]] std::map<std::string, double> test(int /*slot*/) override { return {}; }

  [[nodiscard]] bool can_borrow() const override { return device_.threads > 0; }
  void borrow(int lent) override { lent_ = lent; }

  [[nodiscard]] ArrayInfo info() const override {
    return {static_cast<int>(slots_.size()), static_cast<int>(slots_.size()), std::max(1, device_.threads),
            device_.name, "{}"};
  }

 private:
  struct Held {
    Progress progress;
    trials::Params params;
  };

  void put(int slot, Held held) {
    std::optional<Held>& place = slots_.at(static_cast<std::size_t>(slot));
    if (place) throw Error(ErrorKind::kInternal, fmt::format("{}: slot {} is taken", device_.name, slot));
    place = std::move(held);
  }

  Held& held(int slot) {
    std::optional<Held>& place = slots_.at(static_cast<std::size_t>(slot));
    if (!place) throw Error(ErrorKind::kInternal, fmt::format("{}: slot {} is empty", device_.name, slot));
    return *place;
  }

  const Curves& curves_;
  SimulatedTime& time_;
  const SimulatedDevice& device_;
  std::string partition_;
  std::vector<std::optional<Held>> slots_;
  int epochs_ = 0, lent_ = 0;
};

}  // namespace

double speed_of_threads(int threads, int slots) {
  const int whole = slots / threads, rest = slots % threads;
  const double helpers = rest > 0 ? static_cast<double>(threads) / rest - 1 : 0;
  return slots / (whole + (rest > 0 ? 1 / (1 + kTeamThread * helpers) : 0));
}

SimulatedTrainer::SimulatedTrainer(const StudyConfig& config, const Curves& curves, SimulatedTime& time,
                                   SimulatedDevice device)
    : config_(config), curves_(curves), time_(time), device_(std::move(device)) {}

PartitionPlan SimulatedTrainer::plan(const trials::Params& /*params*/) {
  PartitionPlan plan;
  plan.width = kWidth;
  return plan;
}

std::optional<double> SimulatedTrainer::step_seconds(const std::string& partition, int slots) const {
  if (!opened_.contains(partition)) return std::nullopt;
  return epoch_seconds(partition, slots, device_, 0);
}

std::unique_ptr<TrainerArray> SimulatedTrainer::open(const trials::Params& params, int width, double /*expected*/,
                                                     const Pause& /*pause*/) {
  const std::string partition = config_.partition(params);
  opened_.insert(partition);
  return std::make_unique<SimulatedArray>(curves_, time_, device_, partition, width);
}

}  // namespace hfta::engine
