#include "fusion/array/pipeline.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "fusion/cpu/stages.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {

Pipeline pipeline_of(const SpecializedGraph& alone, const Recipe& recipe, const std::vector<bool>& owned,
                     Collectives& group) {
  if (const std::string why = why_no_pipeline(recipe); !why.empty()) {
    throw Error(ErrorKind::kConfig, fmt::format("array: cannot be a pipeline of {} stages: {}", group.ranks(), why));
  }
  return {group, cpu::balanced_cut(alone.graph, owned, training_batch(alone.graph, recipe), group.ranks())};
}

std::vector<bool> held_in_stage(const Pipeline& pipeline, const Graph& training, const Graph& evaluation,
                                const std::vector<bool>& owned) {
  std::vector<bool> held = cpu::Stages(training, pipeline.cut).weights_of(pipeline.stage());
  const std::vector<bool> evaluated = cpu::Stages(evaluation, pipeline.cut).weights_of(pipeline.stage());
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i] = owned[i] ? pipeline.cut.of_weight[i] == pipeline.stage() : held[i] || evaluated[i];
  }
  return held;
}

std::vector<std::vector<std::byte>> of_all_ranks(Collectives& group, std::vector<std::byte> own) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(group.ranks()));
  all[static_cast<std::size_t>(group.rank())] = std::move(own);
  for (int rank = 0; rank < group.ranks(); ++rank) {
    std::vector<std::byte>& bytes = all[static_cast<std::size_t>(rank)];
    std::uint64_t size = bytes.size();
    group.broadcast(std::as_writable_bytes(std::span(&size, 1)), rank);
    bytes.resize(size);
    group.broadcast(bytes, rank);
  }
  return all;
}

}  // namespace hfta::fusion
