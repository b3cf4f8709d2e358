#pragma once
/// Every way to run an array's slots, one table. What may be asked of it: fusion/ways.hpp.

#include <memory>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/execution/kind.hpp"
#include "fusion/lowering.hpp"

namespace hfta::fusion {

/// All kinds of executors; the first that runs a lowering on a device is taken.
[[nodiscard]] const std::vector<ExecutorKind>& executor_kinds();

/// Makes the executor of the kind that runs it. Throws Error{kConfig} where none does, and as ExecutorKind::make.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const ExecutorModel& model, const Lowering& lowering);

}  // namespace hfta::fusion
