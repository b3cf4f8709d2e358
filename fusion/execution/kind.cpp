#include "fusion/execution/kind.hpp"

#include <algorithm>
#include <cstddef>

#include "fusion/graph/sizes.hpp"

namespace hfta::fusion {
namespace {

constexpr int kMostOnGpu = 4;

std::int64_t bytes_of_outputs(const WayQuestion& question, const Node& node) {
  std::int64_t bytes = 0;
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    const Value& value = question.graph.values[static_cast<std::size_t>(id)];
    if (value.number) continue;
    const std::int64_t once = bytes_of(value.shape, value.dtype, question.recipe.batch_size);
    bytes = sum_of_sizes(bytes, sum_of_sizes(once, once));
  }
  return bytes;
}

}  // namespace

Lowering in_groups_of(int chunk, const WayQuestion& question) {
  const bool gpu = !question.device.is_cpu();
  Lowering lowering;
  lowering.chunk = chunk;
  const int chunks = (question.width + chunk - 1) / chunk;
  // On a GPU chunks run on streams, each with a thread to keep it filled.
  lowering.workers = std::max(1, std::min({question.threads, chunks, gpu ? kMostOnGpu : chunks}));
  lowering.threads_per_worker = gpu ? 1 : std::max(1, question.threads / lowering.workers);
  return lowering;
}

std::int64_t bytes_of_values(const WayQuestion& question) {
  std::int64_t bytes = 0;
  for (const Node& node : question.graph.nodes) bytes = sum_of_sizes(bytes, bytes_of_outputs(question, node));
  return bytes;
}

std::int64_t bytes_of_values(const WayQuestion& question, std::span<const std::string> ops) {
  std::int64_t bytes = 0;
  for (const Node& node : question.graph.nodes) {
    const bool one = std::find(ops.begin(), ops.end(), node.op) != ops.end();
    if (one) bytes = sum_of_sizes(bytes, bytes_of_outputs(question, node));
  }
  return bytes;
}

std::string why_not_keep(const WayQuestion& question) {
  if (question.policy == MemoryPolicy::kAuto || question.policy == MemoryPolicy::kKeep) return "";
  return std::string("it keeps all values, and memory.policy is ") + name_of(question.policy);
}

std::int64_t bytes_of_gradients(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Weight& weight : graph.weights) {
    if (weight.trained) bytes = sum_of_sizes(bytes, bytes_of(weight.shape, weight.dtype, 1));
  }
  return bytes;
}

int slots_at_work(const Lowering& lowering, int width, const c10::Device& device, int stages) {
  // A GPU's groups are all under way: the host only enqueues them.
  if (!device.is_cpu()) return width;
  const int workers =
      stages > 1 ? slots_of_stage(lowering.workers * lowering.threads_per_worker, stages) : lowering.workers;
  return std::min(workers * lowering.chunk, width);
}

}  // namespace hfta::fusion
