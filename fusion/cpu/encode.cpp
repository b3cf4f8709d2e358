#include "fusion/cpu/encode.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
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
  values_.encode(i, all, bound, team);
}

void Coding::decode(std::size_t i, float* x, Team* team) const {
  values_.decode(i, {x, static_cast<std::size_t>(plan_[i].elements)}, team);
}

std::optional<SlotBounds::Sums> Coding::sums(std::size_t weight) const {
  return bounds_.measures() ? std::optional(bounds_.sums(weight)) : std::nullopt;
}

void LayerReads::add(int buffer, std::size_t step, const LayerInput& layer) {
  Reads& reads = reads_[buffer];
  reads.steps.push_back(step);
  if (std::find(reads.layers.begin(), reads.layers.end(), layer) == reads.layers.end()) reads.layers.push_back(layer);
}

std::vector<LayerReads::Candidate> LayerReads::candidates(const Schedule& schedule) const {
  std::map<std::size_t, int> inputs;  // by weight
  for (const auto& [buffer, reads] : reads_) {
    for (const LayerInput& layer : reads.layers) ++inputs[layer.weight];
  }
  std::map<int, std::vector<std::size_t>> touching;  // by buffer: steps of the backward
  for (std::size_t k = schedule.backward; k < schedule.steps.size(); ++k) {
    for (const int b : schedule.steps[k].buffers) {
      std::vector<std::size_t>& steps = touching[b];
      if (steps.empty() || steps.back() != k) steps.push_back(k);
    }
  }
  std::vector<Candidate> found;
  for (const auto& [buffer, reads] : reads_) {
    const bool once = std::all_of(reads.layers.begin(), reads.layers.end(),
                                  [&](const LayerInput& layer) { return inputs.at(layer.weight) == 1; });
    if (once && touching[buffer] == reads.steps) found.push_back({buffer, reads.layers});
  }
  return found;
}

}  // namespace hfta::fusion::cpu
