// Driver: test metrics of the best trials.

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

// Search never sees these numbers: they are taken once, when everything is decided, in an array of one slot so that
// they do not depend on widths.
void Driver::Impl::test_best() {
  for (const trials::Trial* best : table.best_trials()) {
    if (best->test_metrics.empty() && !test(*best)) return;
  }
}

// Tests a trial. False: there are no test data.
bool Driver::Impl::test(const trials::Trial& best) {
  const std::optional<SlotState> state = checkpoints.finished_state(best.number);
  if (!state) {
    batch.events.emplace_back(
        Note{fmt::format("trial {} is {}, but its weights are not on disk: no test metrics", best.number,
                         config.has_several_objectives() ? "on the front" : "the best")});
    return true;
  }
  std::map<std::string, double> metrics = test_metrics(best, *state);
  if (metrics.empty()) return false;
  batch.events.emplace_back(Tested{best.number, metrics});
  batch.changes.test_metrics[best.number] = std::move(metrics);
  return true;
}

// Test metrics, computed on the first device that does not fail.
std::map<std::string, double> Driver::Impl::test_metrics(const trials::Trial& best, const SlotState& state) {
  const trials::Params params = trials::latest_params(best);
  for (std::size_t i = 0;; ++i) {
    if (devices.at(i).failed) continue;
    try {
      const std::unique_ptr<TrainerArray> array = dependencies.trainers[i]->open(params, 1, 1, never);
      array->insert(0, best.number, params, state);
      return array->test(0);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      recover(i, std::current_exception());
    }
  }
}

}  // namespace hfta::engine
