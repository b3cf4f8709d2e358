#pragma once
/// The ways to run a model: which there are on a device, why others are not, and what memory they take. Answered by the
/// table of executors (fusion/executors); nobody who asks knows a row of it.

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/lowering.hpp"
#include "fusion/memory_policy.hpp"
#include "fusion/recipe.hpp"
#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// What is to be run, and where. All that it refers to must outlive the call.
struct WayQuestion {
  const Graph& graph;
  const Recipe& recipe;
  c10::Device device;
  int width = 1;                             ///< Width of the widest array.
  int threads = 1;                           ///< Cores; on a GPU groups that may be under way side by side.
  const StepGraphBackend* graphs = nullptr;  ///< Backend of the arrays; null where nothing is to be captured.
  MemoryPolicy policy = MemoryPolicy::kKeep;
  std::int64_t evaluation_batch = 0;  ///< Samples that are evaluated at a time (fusion/epochs.hpp); 0: none are.
  int stages = 1;  ///< Stages of a pipeline, one of which is to be run (fusion/staged.hpp); 1: the whole graph is.
};

/// Bytes that running takes beside the rows of slots (weights and optimizer state) and what they share. For "compiled"
/// they are what it allocates, if LibTorch runs no op in its place; all else are upper bounds. For stages they are the
/// mean over them.
struct WayMemory {
  std::int64_t slot = 0;     ///< Bytes of every slot, as long as the array lives.
  std::int64_t at_work = 0;  ///< Further bytes of every slot that is at work.
};

/// The lowerings that are worth timing, most promising first: all that the policy has. May compile the graph.
[[nodiscard]] std::vector<Lowering> ways_to_run(const WayQuestion& question);
/// Executors that have none of these for a reason: name and reason, in the table's order. May compile the graph.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ways_refused(const WayQuestion& question);
/// A note on what the lowering runs differently from the rest of the graph, naming ops; "": nothing. May compile the
/// graph.
[[nodiscard]] std::string way_note(const WayQuestion& question, const Lowering& lowering);
/// Whether some executor runs such lowerings on that device. The graph may still have an op that it cannot run.
[[nodiscard]] bool is_runnable(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs);

/// Families of ops of which the lowering may take another form (Lowering::families): name and forms, the first of which
/// is taken where none is named.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::string>>> op_forms(const WayQuestion& question,
                                                                                     const Lowering& lowering);
/// Ops that do not run as others do, by name, and how they run, in words. Throws Error{kConfig} for ops that LibTorch
/// does not have.
[[nodiscard]] std::map<std::string, std::string> op_notes(const Graph& graph);

/// Memory that each of the lowerings takes, in their order. Compiles the graph once for all of them. Throws
/// Error{kConfig} where no executor runs one.
[[nodiscard]] std::vector<WayMemory> memory_of(const WayQuestion& question, std::span<const Lowering> lowerings);
/// The lowering on so many threads, split into teams in each way that there is, most promising first; all of them train
/// the same bits as it does. Empty: other numbers of threads may change bits.
[[nodiscard]] std::vector<Lowering> on_threads(const Lowering& lowering, int threads, const c10::Device& device,
                                               const StepGraphBackend* graphs);
/// Slots of an array of that width that are at work at a time; in a stage of a pipeline those that it holds values of.
[[nodiscard]] int slots_at_work(const Lowering& lowering, int width, const c10::Device& device, int stages = 1);

}  // namespace hfta::fusion
