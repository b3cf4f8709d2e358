#include "engine/fused/task_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

using fusion::Graph;
using fusion::Shape;
using fusion::to_text;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kConfig, (where.empty() ? "" : where + ": ") + what);
}

const Shape& output_shape(const Graph& graph) { return graph.values[static_cast<std::size_t>(graph.output)].shape; }

void check_labels(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part) {
  const Shape& output = output_shape(graph);
  if (output.size() < 2) {
    fail(spec.data.where,
         fmt::format("model: found output {}, wanted [N, classes] for cross_entropy", to_text(output)));
  }
  const auto* labels = std::get_if<std::vector<std::int64_t>>(&data.target.data);
  if (labels == nullptr) fail(spec.data.where, "data: found targets that are not whole numbers, wanted class labels");
  const auto [low, high] = std::minmax_element(labels->begin(), labels->end());
  if (*low < 0 || *high >= output[1]) {
    fail(spec.data.where, fmt::format("data: found label {} in the {} set, wanted 0 to {} (the model's output has {} "
                                      "classes)",
                                      *low < 0 ? *low : *high, part, output[1] - 1, output[1]));
  }
}

// A probability; numbers beyond make the loss unbounded below.
void check_probabilities(const TaskSpec& spec, const fusion::Dataset& data, const char* part) {
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) {
          if (value >= 0 && value <= 1) continue;
          fail(spec.data.where,
               fmt::format("data: found target {} in the {} set, wanted 0 to 1 for bce_with_logits", value, part));
        }
      },
      data.target.data);
}

void check_targets(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part) {
  if (spec.recipe.loss == fusion::Loss::kCrossEntropy) check_labels(spec, graph, data, part);
  if (spec.recipe.loss == fusion::Loss::kBceWithLogits) check_probabilities(spec, data, part);
}

void check_target_shape(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data) {
  Shape wanted = output_shape(graph);
  Shape found = {fusion::kBatch};
  found.insert(found.end(), data.target.shape.begin(), data.target.shape.end());
  if (spec.recipe.loss == fusion::Loss::kCrossEntropy) wanted.erase(wanted.begin() + 1);
  const bool column = wanted.size() == found.size() + 1 && wanted.back() == 1;  // [N, 1] beside [N]
  if (wanted != found && !column) {
    fail(spec.data.where, fmt::format("data: found target {}, wanted {} (the model's output is {})", to_text(found),
                                      to_text(wanted), to_text(output_shape(graph))));
  }
}

// Elements per channel and sample of the first batch norm that sees one value per channel; such a layer has no variance
// to take over a batch of one, and PyTorch refuses it too.
bool needs_two_samples(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const fusion::Node& node) {
    if (node.op != "aten::batch_norm") return false;
    const Shape& shape = graph.values[static_cast<std::size_t>(std::get<fusion::ValueId>(node.args[0]))].shape;
    return std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t extent) { return extent == 1; });
  });
}

}  // namespace

void check_task(const TaskSpec& spec, const Graph& graph, const fusion::Splits& splits) {
  if (splits.train.inputs.size() != graph.inputs.size()) {
    fail(spec.data.where, fmt::format("data.x: found {} arrays, wanted {}, as the model has inputs",
                                      splits.train.inputs.size(), graph.inputs.size()));
  }
  check_target_shape(spec, graph, splits.train);
  check_targets(spec, graph, splits.train, "training");
  if (splits.validation) check_targets(spec, graph, *splits.validation, "validation");
  if (splits.test) check_targets(spec, graph, *splits.test, "test");
  const std::int64_t n = splits.train.size, batch = spec.recipe.batch_size;
  if (spec.drop_last && n < batch) {
    fail(spec.data.where,
         fmt::format("data.batch_size: found {} with drop_last, wanted at most the {} training samples", batch, n));
  }
  const std::int64_t last = n % batch == 0 ? batch : n % batch;
  if (last == 1 && !(spec.drop_last && n > 1 && batch > 1) && needs_two_samples(graph)) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}, which leaves a last batch of one sample of {} under "
                                      "batch norm; set drop_last: true or another batch_size",
                                      batch, n));
  }
}

}  // namespace hfta::engine
