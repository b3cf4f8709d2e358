#include "engine/driver/study/leftovers.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/error.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/study/lease.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "storage/checkpoints.hpp"

namespace hfta::engine {

void remove_leftovers(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record,
                      Files& files, const Clock& clock) {
  using storage::StateKind;
  try {
    storage::StudyStates states(files, store.states(config.study).folder);
    const auto kept_of = [&](storage::StateKind kind) { return states.of(kind).trials().size(); };
    const std::optional<storage::Lease> last = store.lease(config.study);
    const bool killed = last && store.life_sign(config.study, *last, clock).has_value();
    const auto kept = static_cast<std::size_t>(std::max(config.keep, 1) + (config.repetitions.any() ? 1 : 0));
    if (!killed && kept_of(StateKind::kRunning) + kept_of(StateKind::kCopied) == 0 &&
        kept_of(StateKind::kFinished) <= kept) {
      return;
    }
    const StudyLease lease(store, config.study, clock);
    TrialTable table(config, record.run_caps);
    (void)table.restore(store);
    CheckpointManager(states, config, [] {}).begin(table);
  } catch (const Error& error) {
    const ErrorKind kind = error.kind();
    if (kind != ErrorKind::kBusy && kind != ErrorKind::kLocked && kind != ErrorKind::kStorage) throw;
  }
}

}  // namespace hfta::engine
