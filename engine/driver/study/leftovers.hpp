#pragma once
/// Removes what a run leaves if it is killed, or fails, after the study's last round and before its own end.

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/config.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Removes a finished study's mark of a dead holder and its states of trials that are done. Does nothing if
/// nothing is left, if a process holds the study, or if its folder cannot be written to: nothing depends on the
/// removal.
void remove_leftovers(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record,
                      Files& files, const Clock& clock);

}  // namespace hfta::engine
