#include <algorithm>
#include <map>
#include <string>

#include "fusion/eager/eager_executor.hpp"
#include "fusion/eager/program.hpp"

namespace hfta::fusion {
namespace {

bool has_images(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op == "aten::conv2d"; });
}

// Each slot by itself, images also laid out channels last.
std::vector<Lowering> alone(const WayQuestion& question) {
  std::vector<Lowering> all = {in_groups_of(1, question)};
  if (has_images(question.graph)) {
    all.push_back(all.front());
    all.back().channels_last = true;
  }
  if (question.device.is_cpu() && question.width == 1 && question.threads > 1) {
    Lowering one_thread = all.back();  // small ops lose by being shared out
    one_thread.threads_per_worker = 1;
    all.push_back(one_thread);
  }
  return all;
}

// Chunks of growing width; on a GPU the whole width as well.
std::vector<Lowering> together(const WayQuestion& question) {
  std::vector<Lowering> all;
  for (int chunk = 2; chunk <= question.width; chunk *= 2) all.push_back(in_groups_of(chunk, question));
  if (!question.device.is_cpu() && question.width > 1 && all.back().chunk != question.width) {
    all.push_back(in_groups_of(question.width, question));
  }
  return all;
}

// A CPU is best filled slot by slot, a GPU by all slots at once.
std::vector<Lowering> candidates(const WayQuestion& question) {
  std::vector<Lowering> all = alone(question), wide = together(question);
  if (question.device.is_cpu()) {
    all.insert(all.end(), wide.begin(), wide.end());
    return all;
  }
  std::reverse(wide.begin(), wide.end());
  wide.insert(wide.end(), all.begin(), all.end());
  return wide;
}

std::map<std::string, std::string> notes(const Graph& graph) {
  std::map<std::string, std::string> all;
  for (const auto& [op, where] : ops_without_rule(graph)) all[op] = "LibTorch's batching (" + where + ")";
  return all;
}

}  // namespace

ExecutorKind eager_executor() {
  static const std::string name = Lowering().executor;
  return {.name = name.c_str(),
          .runs = [](const Lowering& lowering, const c10::Device&,
                     const StepGraphBackend*) { return lowering.executor == name && lowering.recompute == 0; },
          .why_not = why_not_keep,  // LibTorch runs all that is admitted
          .make = [](const ExecutorModel& model, const Lowering& lowering) -> std::unique_ptr<Executor> {
            return std::make_unique<EagerExecutor>(model, lowering);
          },
          .candidates = candidates,
          // A group's gradients are as wide as its rows.
          .memory = [](const WayQuestion& question, std::span<const Lowering> lowerings) -> std::vector<WayMemory> {
            return std::vector<WayMemory>(lowerings.size(),
                                          {bytes_of_gradients(question.graph), bytes_of_values(question)});
          },
          .op_forms =
              [](const Graph& graph, const Lowering& lowering) {
                return lowering.chunk > 1 ? choosable_families(graph) : decltype(choosable_families(graph))();
              },
          .op_notes = notes};
}

}  // namespace hfta::fusion
