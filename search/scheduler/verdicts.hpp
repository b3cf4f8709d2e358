#pragma once
/// Helpers of the schedulers that pause trials. Internal to search/scheduler.

#include <functional>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

/// Scheduler::take_verdicts: empties `due`; returns the verdicts in order of trial, without those on trials for which
/// `failed` returns true.
[[nodiscard]] std::vector<Verdict> take_due(std::vector<Verdict>& due, const std::function<bool(int)>& failed);

/// Throws Error{kInternal} if an epoch that was reported as `known` is reported as another value.
void require_same(int trial, int epoch, double known, double value);

}  // namespace hfta::search
