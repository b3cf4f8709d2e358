#include "stages_check.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "fusion/graph/uses.hpp"
#include "tensor_values.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

std::byte* bytes_at(const Tensor& t, std::span<std::byte* const> buffers) {
  return buffers[static_cast<std::size_t>(t.buffer)] + t.offset * size_of(t.dtype);
}

// As it travels: row-major.
void copy(const Tensor& from, std::span<std::byte* const> source, const Tensor& to,
          std::span<std::byte* const> target) {
  const std::vector<std::byte> all = row_major_bytes(from, source[static_cast<std::size_t>(from.buffer)]);
  std::memcpy(bytes_at(to, target), all.data(), all.size());
}

}  // namespace

StagesInTurn::StagesInTurn(const Graph& graph, const std::vector<int>& index, const StageCut& cut,
                           const TrainingOptions& options) {
  for (int s = 0; s < cut.stages; ++s) {
    stages_.push_back(compile(
        {.graph = graph, .index = index, .dtype = DType::kFloat64, .options = options, .stage = StageOf{cut, s}}));
  }
}

StagesInTurn::Outcome StagesInTurn::run(const std::vector<std::vector<std::byte>>& weights,
                                        const std::vector<std::vector<std::byte>>& inputs,
                                        const std::vector<double>& hypers, const SlotRandom& random) const {
  std::vector<std::vector<std::byte>> held = weights;  // they may be written
  std::vector<Arena> arenas(stages_.size());
  std::vector<std::span<std::byte*>> buffers;
  std::vector<Run> runs;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const CompiledGraph& plan = stages_[s].plan;
    buffers.push_back(arenas[s].bind(plan));
    for (std::size_t w = 0; w < held.size(); ++w) {
      buffers[s][static_cast<std::size_t>(plan.weights[w].buffer)] = held[w].data();
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (plan.inputs[i].defined())
        std::memcpy(bytes_at(plan.inputs[i], buffers[s]), inputs[i].data(), inputs[i].size());
    }
    runs.push_back({buffers[s], hypers, random, arenas[s].kept(), nullptr});
  }
  Outcome out;
  const auto run_kernels = [&](std::size_t s, std::size_t first, std::size_t end) {
    for (std::size_t k = first; k < end; ++k) stages_[s].plan.kernels[k](runs[s]);
  };
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t i = 0; s > 0 && i < stages_[s].received.size(); ++i) {
      copy(stages_[s - 1].sent[i], buffers[s - 1], stages_[s].received[i], buffers[s]);
      ++out.sent;
    }
    run_kernels(s, 0, stages_[s].plan.backward);
  }
  out.gradients.resize(weights.size());
  for (std::size_t s = stages_.size(); s-- > 0;) {
    for (std::size_t i = 0; i < stages_[s].given.size(); ++i) {
      copy(stages_[s + 1].returned[i], buffers[s + 1], stages_[s].given[i], buffers[s]);
    }
    run_kernels(s, stages_[s].plan.backward, stages_[s].plan.kernels.size());
    for (const WeightGradient& one : stages_[s].plan.gradients) {
      out.gradients[one.weight] =
          values_of<double>(one.tensor, buffers[s][static_cast<std::size_t>(one.tensor.buffer)]);
    }
  }
  for (const Tensor& output : stages_.back().plan.outputs) {
    const auto values = values_of<double>(output, buffers.back()[static_cast<std::size_t>(output.buffer)]);
    out.outputs.insert(out.outputs.end(), values.begin(), values.end());
  }
  return out;
}

std::vector<StageCut> random_cuts(const Graph& graph, int stages, int count) {
  std::vector<std::size_t> first(graph.weights.size(), graph.nodes.size());
  for (std::size_t w = 0; w < first.size(); ++w) {
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const std::vector<ValueId> read = inputs_of(graph.nodes[i]);
      if (std::find(read.begin(), read.end(), graph.weights[w].value) != read.end()) first[w] = i;
    }
  }
  CountedRandom random(23, Stream::kSimulation, graph.nodes.size());
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
  std::vector<StageCut> cuts;
  for (int c = 0; c < count; ++c) {
    StageCut cut{stages, {}};
    std::vector<std::size_t> bounds;
    for (int s = 1; s < stages; ++s) bounds.push_back(below(graph.nodes.size() + 1));
    std::sort(bounds.begin(), bounds.end());
    for (std::size_t w = 0; w < first.size(); ++w) {
      const auto in_order = std::upper_bound(bounds.begin(), bounds.end(), first[w]) - bounds.begin();
      cut.of_weight.push_back(c < (count + 1) / 2 ? static_cast<int>(in_order)
                                                  : static_cast<int>(below(static_cast<std::size_t>(stages))));
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace hfta::fusion::cpu::testing
