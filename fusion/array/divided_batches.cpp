#include "fusion/divided_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "fusion/collectives.hpp"
#include "fusion/graph/batch.hpp"
#include "fusion/passes/out_of_place.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/rows.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {
namespace {

std::string place_of(const Node& node) {
  return fmt::format("{}{}{}", printable(node.op), node.path.empty() ? "" : " in ", printable(node.path));
}

std::string reason_of(const Node& node) {
  if (is_number_op(node.op)) return "computes with the number of samples";
  if (by_batch_statistics(node)) return "takes statistics over the whole batch";
  if (draws(node)) return "draws numbers that are not counted sample by sample";
  return "is not known to keep samples apart";
}

// The calls that an output is made of.
std::vector<bool> needed_for(const Graph& graph, ValueId output) {
  std::vector<bool> values(graph.values.size(), false), nodes(graph.nodes.size(), false);
  values[static_cast<std::size_t>(output)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const std::vector<ValueId>& outputs = graph.nodes[i].outputs;
    nodes[i] = std::any_of(outputs.begin(), outputs.end(),
                           [&](ValueId id) { return id != kNoValue && values[static_cast<std::size_t>(id)]; });
    if (!nodes[i]) continue;
    for (const ValueId id : inputs_of(graph.nodes[i])) values[static_cast<std::size_t>(id)] = true;
  }
  return nodes;
}

// The first call on the way to the output of whose result nothing could be proved.
std::string blamed(const Graph& graph, const std::vector<DependsOn>& depends_on, ValueId output) {
  const std::vector<bool> needed = needed_for(graph, output);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    for (const ValueId id : graph.nodes[i].outputs) {
      if (id == kNoValue || depends_on[static_cast<std::size_t>(id)] != DependsOn::kMore) continue;
      return fmt::format("{} {}", place_of(graph.nodes[i]), reason_of(graph.nodes[i]));
    }
  }
  const Value& value = graph.values[static_cast<std::size_t>(output)];
  return fmt::format("output '{}' {} has no part for each sample", printable(value.name), to_text(value.shape));
}

// The first call that takes batch statistics or writes to buffers, which would be each rank's own; "": there is none.
std::string written_weight(const Graph& graph) {
  MemorySets weights(graph);
  for (const Weight& weight : graph.weights) weights.mark(weight.value);
  for (const Node& node : graph.nodes) {
    if (by_batch_statistics(node)) return fmt::format("{} {}", place_of(node), reason_of(node));
    if (is_number_op(node.op) || !weights.any(written_by(node))) continue;
    return fmt::format("{} writes to the model's buffers", place_of(node));
  }
  return "";
}

std::string broken_limit(const Graph& graph, std::span<const int> parts, std::span<const std::int64_t> batches) {
  if (graph.fixed_batch > 0) {
    return fmt::format("the model was exported for batches of {} samples, and for no others", graph.fixed_batch);
  }
  for (const std::int64_t batch : batches) {
    for (int r = 0; batch > 0 && r < static_cast<int>(parts.size()); ++r) {
      const BatchShare share = share_of_batch(0, batch, r, parts);
      const std::int64_t n = share.end - share.begin;
      if (const std::string limit = graph.limits.broken_by(n); !limit.empty()) {
        return fmt::format("a batch of {} samples leaves a device {}, and the model wants {}", batch, n, limit);
      }
    }
  }
  return "";
}

}  // namespace

std::string why_not_divided(const Graph& model, const Recipe& recipe, std::span<const int> parts,
                            std::span<const std::int64_t> batches) {
  if (parts.size() < 2) return "";
  if (!recipe.phases.empty()) return "train.phases makes several steps of a batch";
  if (std::string limit = broken_limit(model, parts, batches); !limit.empty()) return limit;
  const Graph graph = with_writes_out_of_place(with_complete_arguments(model));
  if (std::string written = written_weight(graph); !written.empty()) return written;
  const std::vector<DependsOn> depends_on = dependence_in_shares(graph);
  const std::size_t read = recipe.loss == Loss::kModel && recipe.loss_options.weighted ? 2 : 1;
  for (std::size_t o = 0; o < read; ++o) {
    const ValueId output = graph.outputs.at(o);
    if (depends_on[static_cast<std::size_t>(output)] != DependsOn::kSample) return blamed(graph, depends_on, output);
  }
  return "";
}

// A separate evaluation graph is taken as it is: batch norm that takes statistics in it takes them.
bool evaluates_samples_apart(const Graph& model) {
  const Graph complete = with_complete_arguments(model);
  const Graph evaluated =
      complete.evaluation != nullptr ? *complete.evaluation : specialized(complete, Purpose::kEvaluation).graph;
  const Graph graph = with_writes_out_of_place(evaluated);
  const std::vector<DependsOn> depends_on = dependence_in_shares(graph);
  return std::all_of(graph.outputs.begin(), graph.outputs.end(), [&](ValueId id) {
    const bool by_sample = begins_with_batch(graph.values[static_cast<std::size_t>(id)].shape);
    return !by_sample || depends_on[static_cast<std::size_t>(id)] == DependsOn::kSample;
  });
}

}  // namespace hfta::fusion
