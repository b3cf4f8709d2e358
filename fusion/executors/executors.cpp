#include "fusion/executors/executors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "fusion/capture/captured_executor.hpp"
#include "fusion/compiled/compiled_executor.hpp"
#include "fusion/eager/eager_executor.hpp"
#include "fusion/staged.hpp"

namespace hfta::fusion {
namespace {

const ExecutorKind* find_kind(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs) {
  const std::vector<ExecutorKind>& kinds = executor_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const ExecutorKind& kind) { return kind.runs(lowering, device, graphs); });
  return found == kinds.end() ? nullptr : &*found;
}

const ExecutorKind& kind_of(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs) {
  if (const ExecutorKind* kind = find_kind(lowering, device, graphs)) return *kind;
  throw Error(ErrorKind::kConfig, fmt::format("lowering: found {} '{}' with chunk {} on {}, which nothing runs",
                                              lowering.executor, lowering.to_text(), lowering.chunk, device.str()));
}

std::string why_not(const ExecutorKind& kind, const WayQuestion& question) {
  if (question.stages > 1 && kind.why_not_staged == nullptr) return "it runs no stages of a pipeline";
  return kind.why_not(question);
}

}  // namespace

const std::vector<ExecutorKind>& executor_kinds() {
  static const std::vector<ExecutorKind> kinds = {compiled_executor(), captured_executor(), eager_executor()};
  return kinds;
}

std::unique_ptr<Executor> make_executor(const ExecutorModel& model, const Lowering& lowering) {
  const ExecutorKind& kind = kind_of(lowering, model.device, model.graphs.get());
  if (model.pipeline != nullptr && kind.why_not_staged == nullptr) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("lowering: found {}, wanted one that runs stages of a pipeline: compiled", lowering.to_text()));
  }
  return kind.make(model, lowering);
}

std::string why_not_staged(const Graph& model, const Recipe& recipe, int stages) {
  std::string why = "nothing runs stages";
  for (const ExecutorKind& kind : executor_kinds()) {
    if (kind.why_not_staged == nullptr) continue;
    why = kind.why_not_staged(model, recipe, stages);
    if (why.empty()) break;
  }
  return why;
}

std::vector<Lowering> ways_to_run(const WayQuestion& question) {
  std::vector<Lowering> all;
  for (const ExecutorKind& kind : executor_kinds()) {
    if (!why_not(kind, question).empty()) continue;
    for (Lowering& lowering : kind.candidates(question)) all.push_back(std::move(lowering));
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> ways_refused(const WayQuestion& question) {
  std::vector<std::pair<std::string, std::string>> refused;
  for (const ExecutorKind& kind : executor_kinds()) {
    if (std::string why = why_not(kind, question); !why.empty()) refused.emplace_back(kind.name, std::move(why));
  }
  return refused;
}

std::string way_note(const WayQuestion& question, const Lowering& lowering) {
  const ExecutorKind& kind = kind_of(lowering, question.device, question.graphs);
  return kind.note == nullptr ? "" : kind.note(question);
}

bool is_runnable(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs) {
  return find_kind(lowering, device, graphs) != nullptr;
}

std::vector<std::pair<std::string, std::vector<std::string>>> op_forms(const WayQuestion& question,
                                                                       const Lowering& lowering) {
  const ExecutorKind& kind = kind_of(lowering, question.device, question.graphs);
  if (kind.op_forms == nullptr) return {};
  return kind.op_forms(question.graph, lowering);
}

std::map<std::string, std::string> op_notes(const Graph& graph) {
  std::map<std::string, std::string> all;
  for (const ExecutorKind& kind : executor_kinds()) {
    if (kind.op_notes != nullptr) all.merge(kind.op_notes(graph));
  }
  return all;
}

std::vector<Lowering> on_threads(const Lowering& lowering, int threads, const c10::Device& device,
                                 const StepGraphBackend* graphs) {
  const ExecutorKind& kind = kind_of(lowering, device, graphs);
  if (kind.on_threads == nullptr) return {};
  return kind.on_threads(lowering, threads);
}

std::vector<WayMemory> memory_of(const WayQuestion& question, std::span<const Lowering> lowerings) {
  std::vector<const ExecutorKind*> runs;
  for (const Lowering& one : lowerings) runs.push_back(&kind_of(one, question.device, question.graphs));
  std::vector<WayMemory> all(lowerings.size());
  for (const ExecutorKind& kind : executor_kinds()) {
    std::vector<Lowering> own;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i] == &kind) own.push_back(lowerings[i]);
    }
    if (own.empty()) continue;
    const std::vector<WayMemory> found = kind.memory(question, own);
    std::size_t next = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i] == &kind) all[i] = found[next++];
    }
  }
  return all;
}

}  // namespace hfta::fusion
