#include "engine/driver/run_budget.hpp"

#include "engine/driver/goals/budget.hpp"

namespace hfta::engine {

RunBudget::RunBudget(const StudyConfig& config, const Clock& clock, double spent_before)
    : config_(config), clock_(clock), began_(clock.seconds()), spent_before_(spent_before) {}

bool RunBudget::out_of_time() const { return is_out_of_time(config_, spent()); }

void RunBudget::look(const TrialTable& table, bool catching_up) {
  if (catching_up && !out_of_time()) return;
  if (has_ended_ || table.finished() || !ends_early(config_)) return;
  ended_by_ = end_of(config_, {spent(), table.epochs(), table.best_value()});
  has_ended_ = !ended_by_.empty();
}

}  // namespace hfta::engine
