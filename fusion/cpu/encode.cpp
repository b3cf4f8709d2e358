#include "fusion/cpu/encode.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

bool has_layer(const std::string& op) {
  constexpr std::array<std::string_view, 5> kOps = {"aten::conv2d", "aten::conv1d", "aten::conv2d.padding",
                                                    "aten::conv1d.padding", "aten::linear"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

constexpr std::size_t kWeight = 1;  // position among the arguments of each of these

}  // namespace

BoundLayout bounded_layers(const Graph& graph) {
  std::vector<int> reads(graph.values.size(), 0);
  std::vector<bool> of_layer(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : inputs_of(node)) ++reads[static_cast<std::size_t>(id)];
    if (!has_layer(node.op) || node.args.size() <= kWeight) continue;
    const auto* const weight = std::get_if<ValueId>(&node.args[kWeight]);
    if (weight != nullptr && *weight != kNoValue) of_layer[static_cast<std::size_t>(*weight)] = true;
  }
  std::vector<std::int64_t> outputs;
  for (const Weight& weight : graph.weights) {
    const auto value = static_cast<std::size_t>(weight.value);
    const bool bounded = weight.trained && weight.dtype == DType::kFloat32 && !weight.shape.empty() &&
                         of_layer[value] && reads[value] == 1;
    outputs.push_back(bounded ? weight.shape.front() : 0);
  }
  return BoundLayout(std::move(outputs));
}

void Coding::encode(std::size_t i, const float* x, Team* team) {
  const EncodedValue& value = plan_[i];
  const std::span<const float> all(x, static_cast<std::size_t>(value.elements));
  float bound = std::numeric_limits<float>::infinity();
  for (const LayerInput& layer : value.layers) {
    const float own =
        bounds_.bound(layer.weight, {all, static_cast<std::size_t>(layer.channels)}, layer.groups, share_);
    bound = own < bound ? own : bound;
  }
  values_.encode(i, all, static_cast<std::size_t>(value.piece), bound, team);
}

void Coding::decode(std::size_t i, std::int64_t first, std::int64_t count, float* x, Team* team) const {
  values_.decode(i, static_cast<std::size_t>(first), {x, static_cast<std::size_t>(count)}, team);
}

std::optional<SlotBounds::Sums> Coding::sums(std::size_t weight) const {
  return bounds_.measures() ? std::optional(bounds_.sums(weight)) : std::nullopt;
}

void LayerReads::add(int buffer, Read read) { reads_[buffer].push_back(std::move(read)); }

std::vector<LayerInput> LayerReads::Candidate::layers() const {
  std::vector<LayerInput> all;
  for (const Read& read : reads) {
    if (std::find(all.begin(), all.end(), read.layer) == all.end()) all.push_back(read.layer);
  }
  return all;
}

std::int64_t LayerReads::Candidate::piece() const {
  const std::int64_t piece = reads.front().piece;
  return std::all_of(reads.begin(), reads.end(), [&](const Read& read) { return read.piece == piece; }) ? piece : 0;
}

std::vector<LayerReads::Candidate> LayerReads::candidates(const Schedule& schedule) const {
  std::vector<Candidate> found;
  std::map<std::size_t, int> inputs;  // by weight
  for (const auto& [buffer, reads] : reads_) {
    found.push_back({buffer, reads});
    for (const LayerInput& layer : found.back().layers()) ++inputs[layer.weight];
  }
  std::map<int, std::vector<std::size_t>> touching;  // by buffer: steps of the backward
  for (std::size_t k = schedule.backward; k < schedule.steps.size(); ++k) {
    for (const int b : schedule.steps[k].buffers) {
      std::vector<std::size_t>& steps = touching[b];
      if (steps.empty() || steps.back() != k) steps.push_back(k);
    }
  }
  std::erase_if(found, [&](const Candidate& one) {
    std::vector<std::size_t> steps;
    for (const Read& read : one.reads) steps.push_back(read.step);
    const bool once = std::all_of(one.reads.begin(), one.reads.end(),
                                  [&](const Read& read) { return inputs.at(read.layer.weight) == 1; });
    return !once || touching[one.buffer] != steps;
  });
  return found;
}

}  // namespace hfta::fusion::cpu
