#pragma once
/// Signals that ask the program to stop, as Ctrl-C does.

#include <atomic>

namespace hfta::engine {

/// From now on the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 asks for an end after the step, by putting its number into
/// the result. A second SIGINT or SIGTERM ends the process at once, with 128 + its number; the other two never do,
/// since terminals and service managers send SIGHUP twice, and Slurm SIGUSR1 ahead of SIGTERM. SIGHUP stays ignored
/// where it was (nohup).
const std::atomic<int>& catch_stop_signals();

}  // namespace hfta::engine
