#pragma once
/// What a run leaves that is killed, or fails, after the study's last round and before its own end.

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/config.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Of a finished study, removes the mark of a holder that is dead and the states of trials that are done. Does nothing
/// where nothing is left, or where somebody has the study or its folder cannot be written to: nothing depends on it.
void remove_leftovers(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record,
                      Files& files, const Clock& clock);

}  // namespace hfta::engine
