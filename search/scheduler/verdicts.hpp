#pragma once
/// Helpers of the schedulers that pause trials. Internal to search/scheduler.

#include <functional>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

/// Scheduler::take_verdicts: empties `due`; returns the verdicts in order of trial, without those on trials for which
/// `failed` returns true.
[[nodiscard]] std::vector<Verdict> take_due(std::vector<Verdict>& due, const std::function<bool(int)>& failed);

/// Throws Error{kInternal} unless `trial` is 0 or more.
void require_trial(int trial);

/// Throws Error{kInternal} unless `trial` is 0 or more and `epoch` 1 to `most`.
void require_report(int trial, int epoch, int most);

/// Throws Error{kInternal} if an epoch that was reported as `known` is reported as another value.
void require_same(int trial, int epoch, double known, double value);

}  // namespace hfta::search
