#include "storage/store.hpp"

namespace hfta::storage {

bool Changes::empty() const {
  return started.empty() && epochs.empty() && copies.empty() && states.empty() && arrays.empty() && occupancy.empty() &&
         rounds.empty() && test_metrics.empty() && !progress;
}

bool Store::is_marked(const trials::Trial& trial) { return trial.reason.starts_with("damaged"); }

}  // namespace hfta::storage
