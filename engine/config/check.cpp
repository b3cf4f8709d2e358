#include "engine/config/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "fusion/layers.hpp"
#include "search/choices.hpp"
#include "search/space.hpp"

namespace hfta::engine::configuration {
namespace {

using trials::Params;
using trials::ParamValue;

constexpr std::int64_t kMostCombinations = 256;

// Facts of built-in data that are known without reading them.
struct KnownData {
  fusion::Shape input;
  std::int64_t classes = 0;
};

std::optional<KnownData> known_data(const fusion::DataSource& source) {
  if (source.name == "digits") return KnownData{{fusion::kBatch, 1, 8, 8}, 10};
  return std::nullopt;
}

std::vector<ParamValue> values_to_try(const trials::Distribution& distribution) {
  const auto choices = search::Choices::of(distribution);
  if (!choices || choices->count() > kMostCombinations) return search::extremes(distribution);
  std::vector<ParamValue> values;
  for (std::int64_t i = 0; i < choices->count(); ++i) values.push_back(choices->value(i));
  return values;
}

// Checks that the output [N, classes, ...] has enough classes; other needs of labels are checked with the data.
void check_classes(const TaskSpec& task, const fusion::Graph& graph, const KnownData& data) {
  if (fusion::info_of(task.recipe.loss).targets != fusion::Targets::kClasses) return;
  const fusion::Shape& output = graph.values[static_cast<std::size_t>(graph.outputs[0])].shape;
  if (output.size() == 2 && output[1] >= data.classes) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: model: found output {}, wanted [N, {}]: {} has {} classes", task.layers.back().where,
                          fusion::to_text(output), data.classes, task.data.name, data.classes));
}

// The parameters that may be to blame: those that change shapes, and the one that is tried.
std::string context_of(const StudyConfig& config, const Params& params, const std::string& tried) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params) {
    const bool named = name == tried || config.shape_changing.contains(name);
    if (named) parts.push_back(printable(name) + "=" + printable(trials::to_text(value)));
  }
  return parts.empty() ? "" : " (with " + join(parts) + ")";
}

// Reads the task of a trial. `all` may have parameters that do not apply.
void try_out(const StudyConfig& config, const Params& all, const std::string& tried = "") {
  const Params params = trials::applying(config.space, all);
  if (search::broken(config.constraints, params) != nullptr) return;
  const TaskSpec task = config.task(params);
  const auto known = known_data(task.data);
  if (!known || task.model_file) return;
  try {
    check_classes(task, fusion::build_graph(task.layers, known->input, task.recipe.dtype), *known);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    throw Error(error.kind(), error.what() + context_of(config, params, tried));
  }
}

struct Axis {
  std::size_t parameter = 0;
  std::vector<ParamValue> values;
};

Params at(const Params& base, const std::vector<Axis>& axes, const std::vector<std::size_t>& indices) {
  Params params = base;
  for (std::size_t a = 0; a < axes.size(); ++a) params[axes[a].parameter].second = axes[a].values[indices[a]];
  return params;
}

// Advances to the next combination, the last axis fastest; false after the last one.
bool advance(const std::vector<Axis>& axes, std::vector<std::size_t>& indices) {
  for (std::size_t a = axes.size(); a-- > 0;) {
    if (++indices[a] < axes[a].values.size()) return true;
    indices[a] = 0;
  }
  return false;
}

void try_shapes(const StudyConfig& config, const Params& base, const std::vector<Axis>& axes) {
  double combinations = 1;
  for (const Axis& axis : axes) combinations *= static_cast<double>(axis.values.size());
  std::vector<std::size_t> indices(axes.size(), 0);
  if (combinations <= static_cast<double>(kMostCombinations)) {
    do {
      try_out(config, at(base, axes, indices));
    } while (advance(axes, indices));
    return;
  }
  for (std::int64_t draw = 0; draw < kMostCombinations; ++draw) {
    CountedRandom random(0, Stream::kSample, static_cast<std::uint64_t>(draw));
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::size_t count = axes[a].values.size();
      const bool corner = draw < 2;  // the first two have all first values, or all last ones
      indices[a] = corner ? (draw == 0 ? 0 : count - 1) : static_cast<std::size_t>(random.below(count));
    }
    try_out(config, at(base, axes, indices));
  }
}

bool is_condition(const trials::Space& space, const std::string& name) {
  return std::any_of(space.begin(), space.end(), [&](const trials::Parameter& parameter) {
    return std::any_of(parameter.when.begin(), parameter.when.end(),
                       [&](const trials::Condition& condition) { return condition.parameter == name; });
  });
}

}  // namespace

Params base_params(const trials::Space& space) {
  Params params;
  for (const trials::Parameter& parameter : space) {
    params.emplace_back(parameter.name, search::extremes(parameter.distribution).front());
  }
  return params;
}

void check_space(const StudyConfig& config, const std::set<std::string>& used) {
  const Params base = base_params(config.space);
  std::vector<Axis> shapes;
  for (std::size_t i = 0; i < config.space.size(); ++i) {
    if (!config.shape_changing.contains(config.space[i].name) && !is_condition(config.space, config.space[i].name))
      continue;
    shapes.push_back({i, values_to_try(config.space[i].distribution)});
  }
  try_shapes(config, base, shapes);
  for (std::size_t i = 0; i < config.space.size(); ++i) {
    const std::string& name = config.space[i].name;
    if (config.shape_changing.contains(name) || !used.contains(name)) continue;
    for (const ParamValue& value : search::extremes(config.space[i].distribution)) {
      Params params = base;
      trials::make_apply(config.space, config.space[i].name, params);
      params[i].second = value;
      try_out(config, params, name);
    }
  }
}

}  // namespace hfta::engine::configuration
