#include "fusion/executors/executors.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "fusion/capture/captured_executor.hpp"
#include "fusion/compiled/compiled_executor.hpp"
#include "fusion/eager/eager_executor.hpp"

namespace hfta::fusion {

const std::vector<ExecutorKind>& executor_kinds() {
  static const std::vector<ExecutorKind> kinds = {compiled_executor(), captured_executor(), eager_executor()};
  return kinds;
}

std::unique_ptr<Executor> make_executor(const ExecutorModel& model, const Lowering& lowering) {
  for (const ExecutorKind& kind : executor_kinds()) {
    if (kind.runs(lowering, model.device, model.graphs.get())) return kind.make(model, lowering);
  }
  throw Error(ErrorKind::kInternal, fmt::format("lowering: found '{}', which nothing runs", lowering.to_text()));
}

std::vector<Lowering> executor_candidates(const CandidateQuestion& question) {
  std::vector<Lowering> all;
  for (const ExecutorKind& kind : executor_kinds()) {
    for (Lowering& lowering : kind.candidates(question)) all.push_back(std::move(lowering));
  }
  return all;
}

}  // namespace hfta::fusion
