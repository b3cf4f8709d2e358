#pragma once
/// Every way to run an array's slots, one table.

#include <memory>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/execution/kind.hpp"
#include "fusion/lowering.hpp"

namespace hfta::fusion {

/// In order: the first that runs a lowering on a device does.
[[nodiscard]] const std::vector<ExecutorKind>& executor_kinds();

/// Of the kind that runs it. Throws Error{kConfig} as ExecutorKind::make does.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const ExecutorModel& model, const Lowering& lowering);

/// Of all kinds, in the table's order.
[[nodiscard]] std::vector<Lowering> executor_candidates(const CandidateQuestion& question);

}  // namespace hfta::fusion
