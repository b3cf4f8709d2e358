#pragma once
/// A row of the table of executors (fusion/executors): what is known about one way to run before an array exists.

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/lowering.hpp"
#include "fusion/ways.hpp"

namespace hfta::fusion {

/// The lowering in groups of `chunk` slots, dealt to as many threads as the question allows.
[[nodiscard]] Lowering in_groups_of(int chunk, const WayQuestion& question);

/// Bytes of a batch's values where none is reused: each node's output, once forward and once backward. These three
/// throw Error{kConfig} where 64 bits do not hold them.
[[nodiscard]] std::int64_t bytes_of_values(const WayQuestion& question);
/// Bytes of the values of the nodes whose op is one of these.
[[nodiscard]] std::int64_t bytes_of_values(const WayQuestion& question, std::span<const std::string> ops);
/// Why an executor that keeps all values is not for the question's policy; "" if it is.
[[nodiscard]] std::string why_not_keep(const WayQuestion& question);
/// Bytes of the gradients of one slot's trained weights.
[[nodiscard]] std::int64_t bytes_of_gradients(const Graph& graph);

/// Members that have a default need not be named.
struct ExecutorKind {
  const char* name;
  /// Whether this executor is there for such lowerings on this device; the first row that says so is asked to make it.
  /// `graphs` may be null.
  bool (*runs)(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs);
  /// Why it cannot run the question's graph on its device, naming an op where one is to blame; "" if it can.
  std::string (*why_not)(const WayQuestion& question);
  /// Throws Error{kConfig} naming an op that cannot be run so, or what of the lowering does not fit.
  std::unique_ptr<Executor> (*make)(const ExecutorModel& model, const Lowering& lowering);
  /// Lowerings that are worth timing, most promising first. Asked where why_not() is "".
  std::vector<Lowering> (*candidates)(const WayQuestion& question);
  /// The memory that each of its lowerings takes (WayMemory); no executor is made to find it.
  std::vector<WayMemory> (*memory)(const WayQuestion& question, std::span<const Lowering> lowerings);
  /// ways.hpp. Null: how many threads there are may change bits.
  std::vector<Lowering> (*on_threads)(const Lowering& lowering, int threads) = nullptr;
  /// staged.hpp. Null: it runs no stage of a pipeline (ExecutorModel::pipeline).
  std::string (*why_not_staged)(const Graph& graph, const Recipe& recipe, int stages) = nullptr;
  /// ways.hpp: way_note, op_forms, op_notes.
  std::string (*note)(const WayQuestion& question) = nullptr;
  std::vector<std::pair<std::string, std::vector<std::string>>> (*op_forms)(const Graph& graph,
                                                                            const Lowering& lowering) = nullptr;
  std::map<std::string, std::string> (*op_notes)(const Graph& graph) = nullptr;
};

}  // namespace hfta::fusion
