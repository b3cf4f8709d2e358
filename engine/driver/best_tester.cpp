#include "engine/driver/best_tester.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace hfta::engine {

BestTester::BestTester(const StudyConfig& config, const TrialTable& table, CheckpointManager& checkpoints,
                       Devices devices, WriteBatch& batch)
    : config_(config), table_(table), checkpoints_(checkpoints), devices_(std::move(devices)), batch_(batch) {}

void BestTester::test() {
  for (const trials::Trial* best : table_.best_trials()) {
    if (best->test_metrics.empty() && !test(*best)) return;
  }
}

// Tests a trial. False: there are no test data.
bool BestTester::test(const trials::Trial& best) {
  const std::optional<SlotState> state = checkpoints_.finished_state(best.number);
  if (!state) {
    batch_.events.emplace_back(
        Note{fmt::format("trial {} is {}, but its weights are not on disk: no test metrics", best.number,
                         config_.has_several_objectives() ? "on the front" : "the best")});
    return true;
  }
  std::map<std::string, double> metrics = test_metrics(best, *state);
  if (metrics.empty()) return false;
  batch_.events.emplace_back(Tested{best.number, metrics});
  batch_.changes.test_metrics[best.number] = std::move(metrics);
  return true;
}

// Test metrics, computed on the first device that does not fail.
std::map<std::string, double> BestTester::test_metrics(const trials::Trial& best, const SlotState& state) {
  const trials::Params params = trials::latest_params(best);
  for (std::size_t i = 0;; ++i) {
    if (devices_.failed(i)) continue;
    try {
      const std::unique_ptr<TrainerArray> array = devices_.trainers[i]->open(params, 1, 1, never);
      array->insert(0, best.number, params, state);
      return array->test(0);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      devices_.recover(i, std::current_exception());
    }
  }
}

}  // namespace hfta::engine
