#pragma once
/// Ctrl-C and its kin.

#include <atomic>

namespace hfta::engine {

/// From now on the first SIGINT or SIGTERM asks for an end after the step, by putting its number into the result; the
/// second ends the process at once, with 128 + its number.
const std::atomic<int>& catch_stop_signals();

}  // namespace hfta::engine
