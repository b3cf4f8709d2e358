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

constexpr const char* kBatchNorm = "aten::batch_norm";

bool has_layer(const std::string& op) {
  constexpr std::array<std::string_view, 6> kOps = {"aten::conv2d",         "aten::conv1d", "aten::conv2d.padding",
                                                    "aten::conv1d.padding", "aten::linear", kBatchNorm};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

// The value of the weight of the node's layer, if it has one.
std::optional<std::size_t> weight_of(const Node& node) {
  constexpr std::size_t kWeight = 1;  // position among the arguments of each of these ops
  if (!has_layer(node.op) || node.args.size() <= kWeight) return std::nullopt;
  const auto* const weight = std::get_if<ValueId>(&node.args[kWeight]);
  return weight != nullptr && *weight != kNoValue ? std::optional(static_cast<std::size_t>(*weight)) : std::nullopt;
}

// Nodes that `from` is computed from.
std::vector<bool> nodes_above(const Graph& graph, const std::vector<std::size_t>& makers, std::size_t from) {
  std::vector<bool> seen(graph.nodes.size(), false);
  std::vector<std::size_t> open = {from};
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (const ValueId id : inputs_of(graph.nodes[node])) {
      const std::size_t maker = makers[static_cast<std::size_t>(id)];
      if (maker == kNobody || seen[maker]) continue;
      seen[maker] = true;
      open.push_back(maker);
    }
  }
  return seen;
}

// By node: position of the weight of its layer, if that has a bound.
using Places = std::vector<std::optional<std::size_t>>;

// The layers to whose gradients the norm at node `norm` passes its noise on; nothing if that of another weight is among
// them, of which nobody knows what it can take. Biases of layers are no others: they take what their layer takes.
std::optional<std::vector<std::size_t>> layers_below(const Graph& graph, const std::vector<std::size_t>& makers,
                                                     const std::vector<bool>& trained, const Places& places,
                                                     std::size_t norm) {
  std::vector<std::size_t> layers;
  const std::vector<bool> above = nodes_above(graph, makers, norm);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!above[n]) continue;
    if (places[n]) {
      layers.push_back(*places[n]);
      continue;
    }
    const std::vector<ValueId> reads = inputs_of(graph.nodes[n]);
    if (std::ranges::any_of(reads, [&](ValueId id) { return trained[static_cast<std::size_t>(id)]; })) {
      return std::nullopt;
    }
  }
  return layers;
}

std::optional<StandardByChannel> standard_in(const Run& run, const EncodedValue& value) {
  if (!value.standard) return std::nullopt;
  const auto& [mean, deviation] = *value.standard;
  const auto channels = static_cast<std::size_t>(mean.numel());
  return StandardByChannel{{run.at<float>(mean), channels}, {run.at<float>(deviation), channels}};
}

}  // namespace

BoundLayout bounded_layers(const Graph& graph) {
  std::vector<int> reads(graph.values.size(), 0);
  std::vector<std::size_t> layer(graph.values.size(), kNobody);  // by value: the node whose weight it is
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : inputs_of(graph.nodes[n])) ++reads[static_cast<std::size_t>(id)];
    if (const auto weight = weight_of(graph.nodes[n])) layer[*weight] = n;
  }
  std::vector<std::int64_t> outputs;
  std::vector<bool> trained(graph.values.size(), false);
  Places places(graph.nodes.size());
  for (const Weight& weight : graph.weights) {
    const auto value = static_cast<std::size_t>(weight.value);
    const bool bounded = weight.trained && weight.dtype == DType::kFloat32 && !weight.shape.empty() &&
                         layer[value] != kNobody && reads[value] == 1;
    if (bounded) places[layer[value]] = outputs.size();
    outputs.push_back(bounded ? weight.shape.front() : 0);
    trained[value] = weight.trained;
  }
  std::map<std::size_t, std::vector<std::size_t>> below;
  const std::vector<std::size_t> makers = makers_of(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!places[n] || graph.nodes[n].op != kBatchNorm) continue;
    if (auto layers = layers_below(graph, makers, trained, places, n)) {
      below[*places[n]] = *std::move(layers);
    } else {
      outputs[*places[n]] = 0;
    }
  }
  return BoundLayout(std::move(outputs), std::move(below));
}

void Coding::encode(const Run& run, std::size_t i, const float* x) {
  const EncodedValue& value = plan_[i];
  const std::span<const float> all(x, static_cast<std::size_t>(value.elements));
  float bound = std::numeric_limits<float>::infinity();
  for (const LayerInput& layer : value.layers) {
    const float own = value.standard ? bounds_.norm_bound(layer.weight, share_)
                                     : bounds_.bound(layer.weight, {all, static_cast<std::size_t>(layer.channels)},
                                                     layer.groups, share_);
    bound = own < bound ? own : bound;
  }
  const auto by = standard_in(run, value);
  const EncodeAs as{static_cast<std::size_t>(value.piece),
                    bound,
                    by ? &*by : nullptr,
                    {run.at<std::byte>(value.room), static_cast<std::size_t>(value.room.numel())}};
  values_.encode(i, all, as, run.team);
}

void Coding::decode(const Run& run, std::size_t i, std::int64_t first, std::int64_t count, float* x, Team* team) const {
  const auto by = standard_in(run, plan_[i]);
  values_.decode(i, static_cast<std::size_t>(first), {x, static_cast<std::size_t>(count)}, team, by ? &*by : nullptr);
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
    const bool alike = !one.standard() ? std::none_of(one.reads.begin(), one.reads.end(),
                                                      [](const Read& read) { return read.standard.has_value(); })
                                       : one.layers().size() == 1;
    return !once || !alike || touching[one.buffer] != steps;
  });
  return found;
}

}  // namespace hfta::fusion::cpu
