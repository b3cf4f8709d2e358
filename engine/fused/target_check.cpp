#include "engine/fused/target_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/fused/task_check.hpp"
#include "fusion/data/blocks.hpp"
#include "fusion/graph/batch.hpp"

namespace hfta::engine {
namespace {

using fusion::Graph;
using fusion::Shape;
using fusion::Targets;
using fusion::to_text;

[[noreturn]] void fail(const TaskSpec& spec, const std::string& what) {
  throw Error(ErrorKind::kConfig, (spec.data.where.empty() ? "" : spec.data.where + ": ") + what);
}

const Shape& shape_of(const Graph& graph, fusion::ValueId id) {
  return graph.values[static_cast<std::size_t>(id)].shape;
}
const Shape& output_shape(const Graph& graph) { return shape_of(graph, graph.outputs[0]); }

Targets targets_of(const TaskSpec& spec) { return fusion::info_of(spec.recipe.loss).targets; }

std::int64_t classes_of(const TaskSpec& spec, const Graph& graph) {
  const Shape& output = output_shape(graph);
  const std::size_t dim = spec.recipe.loss_options.class_dim < 0 ? output.size() - 1 : 1;
  if (output.size() >= 2 && output[dim] > 0) return output[dim];
  fail(spec,
       fmt::format("model: found output {}, wanted [N, classes] for {}", to_text(output), name_of(spec.recipe.loss)));
}

void check_labels(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part) {
  if (fusion::is_floating(data.target.dtype())) {
    fail(spec, "data: found targets that are not whole numbers, wanted class labels");
  }
  const std::int64_t classes = classes_of(spec, graph), ignored = spec.recipe.loss_options.ignore_index;
  fusion::for_each_block(data.target, data.size, [&]<typename T>(std::span<const T> labels) {
    for (const T value : labels) {
      const auto label = static_cast<std::int64_t>(value);
      if ((label >= 0 && label < classes) || label == ignored) continue;
      fail(spec, fmt::format("data: found label {} in the {} set, wanted 0 to {} (the model's output has {} classes)",
                             label, part, classes - 1, classes));
    }
  });
  const std::size_t weights = spec.recipe.loss_options.class_weight.size();
  if (weights == 0 || weights == static_cast<std::size_t>(classes)) return;
  fail(spec, fmt::format("train.loss.class_weight: found {} weights, wanted {}, one for each class of the output",
                         weights, classes));
}

// A condition on targets beside that they are finite numbers; null: there is none.
struct Bound {
  bool (*allows)(double value);
  const char* wanted;
};

Bound bound_of(Targets targets) {
  switch (targets) {
    case Targets::kDistributions:
    case Targets::kProbabilities:
      return {[](double value) { return value >= 0 && value <= 1; }, "0 to 1"};
    case Targets::kCounts:
      return {[](double value) { return value >= 0; }, "0 or more"};
    case Targets::kSigns:
      return {[](double value) { return value == -1 || value == 1; }, "-1 or 1"};
    case Targets::kNone:
    case Targets::kClasses:
    case Targets::kValues:
      break;
  }
  return {nullptr, ""};
}

void check_values(const TaskSpec& spec, const fusion::Dataset& data, const char* part) {
  const Bound bound = bound_of(targets_of(spec));
  if (bound.allows == nullptr) return;
  fusion::for_each_block(data.target, data.size, [&]<typename T>(std::span<const T> values) {
    for (const T value : values) {
      if (bound.allows(static_cast<double>(value))) continue;
      fail(spec, fmt::format("data: found target {} in the {} set, wanted {} for {}", value, part, bound.wanted,
                             name_of(spec.recipe.loss)));
    }
  });
}

void check_pos_weight(const TaskSpec& spec, const Graph& graph) {
  const std::size_t weights = spec.recipe.loss_options.pos_weight.size();
  const std::int64_t last = output_shape(graph).back();
  if (weights <= 1 || static_cast<std::int64_t>(weights) == last) return;
  fail(spec, fmt::format("train.loss.pos_weight: found {} weights, wanted 1 or {}, the output's last dimension",
                         weights, last));
}

}  // namespace

void check_target_shape(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data) {
  if (targets_of(spec) == Targets::kNone) return;
  Shape wanted = output_shape(graph);
  if (!fusion::begins_with_batch(wanted)) {
    fail(spec, fmt::format("model: found output {}, wanted the batch as its first dimension", to_text(wanted)));
  }
  const Shape found = with_batch(data.target.shape);
  if (targets_of(spec) == Targets::kClasses) {
    static_cast<void>(classes_of(spec, graph));
    spec.recipe.loss_options.class_dim < 0 ? wanted.pop_back() : void(wanted.erase(wanted.begin() + 1));
  }
  const bool column = wanted.size() == found.size() + 1 && wanted.back() == 1;  // [N, 1] beside [N]
  if (wanted != found && !column) {
    const bool soft = targets_of(spec) == Targets::kClasses && found == output_shape(graph);
    fail(spec,
         fmt::format("data: found target {}, wanted {} (the model's output is {}){}", to_text(found), to_text(wanted),
                     to_text(output_shape(graph)),
                     soft ? "; probabilities of classes, or classes as 0 and 1: train.loss: soft_cross_entropy" : ""));
  }
  check_pos_weight(spec, graph);
}

void check_targets(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part) {
  if (targets_of(spec) == Targets::kNone) return;
  targets_of(spec) == Targets::kClasses ? check_labels(spec, graph, data, part) : check_values(spec, data, part);
}

void check_whole_batches(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part,
                         bool mixes_samples) {
  const Graph& evaluated = graph.evaluation != nullptr ? *graph.evaluation : graph;
  const std::int64_t batch = spec.recipe.batch_size;
  if (data.size % batch == 0) return;
  const bool filled = graph.fixed_batch > 0 || !graph.limits.allow(data.size % batch);
  const bool own = targets_of(spec) == Targets::kNone;
  const bool numbers = own && std::any_of(evaluated.outputs.begin(), evaluated.outputs.end(), [&](fusion::ValueId id) {
                         return !fusion::begins_with_batch(shape_of(evaluated, id));
                       });
  if (!filled || !(numbers || mixes_samples)) return;
  const std::string wanted = graph.fixed_batch > 0
                                 ? fmt::format("a multiple of {}: the model takes no smaller batch", batch)
                                 : fmt::format(
                                       "another number or data.batch_size: the last batch would be of {}, the "
                                       "model takes {}",
                                       data.size % batch, printable(graph.limits.broken_by(data.size % batch)));
  fail(spec, fmt::format(
                 "data: found {} samples in the {} set, wanted {}, and {}", data.size, part, wanted,
                 numbers ? "one of its outputs is of a batch as a whole" : "a sample's output depends on the others"));
}

}  // namespace hfta::engine
