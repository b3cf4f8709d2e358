#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

// Keys of a training that has no phases.
constexpr const char* kSingle[] = {"loss", "optimizer", "clip_norm"};

void read_loss_of(Reader& section, fusion::Phase& phase) {
  phase.loss = section.word("loss");
  const std::optional<std::string> weight = section.optional_word("weight");
  phase.weighted = weight.has_value();
  phase.weight = weight.value_or("");
}

void read_phase(Reader& section, const trials::Space& space, TaskSpec& task) {
  fusion::Phase& phase = task.recipe.phases.emplace_back();
  fusion::PhaseHyper& hyper = task.hyper.phases.emplace_back();
  read_loss_of(section, phase);
  fusion::ParameterGroup trained = read_params(section);
  phase.params = std::move(trained.params);
  phase.where = std::move(trained.where);
  Reader optimizer = section.section("optimizer");
  OptimizerRead found = read_optimizer(optimizer, space);
  phase.optimizer = found.kind;
  phase.groups = std::move(found.groups);
  hyper.optimizer = found.hyper;
  hyper.groups = std::move(found.group_hypers);
  phase.every = section.integer("every");
  task.recipe.clips |= section.has("clip_norm");
  hyper.clip_norm = section.optional_number("clip_norm");
  hyper.clip_weights = section.optional_number("clip_weights");
  const auto same = std::count_if(task.recipe.phases.begin(), task.recipe.phases.end(),
                                  [&](const fusion::Phase& other) { return other.loss == phase.loss; });
  if (same > 1) section.fail("loss", "found '" + excerpt(phase.loss) + "', which is another phase's loss, too");
}

}  // namespace

void read_phases(Reader& train, const trials::Space& space, TaskSpec& task) {
  for (const char* key : kSingle) {
    if (train.has(key)) train.fail(key, "found it beside phases, each of which has its own; wanted one or the other");
  }
  if (train.has("accumulate")) train.fail("accumulate", "found it beside phases, which accumulate no batches");
  task.recipe.clips = false;  // unless a phase says so
  const Site site = train.site("phases");
  const Node& list = *train.find("phases");
  if (list.kind != Node::Kind::kList || list.items.empty()) site.mismatch(list);
  if (!task.model_file)
    site.fail(list, "found phases beside model.layers, wanted a model.file, whose outputs are their losses");
  json& recorded = train.record("phases", json::array());
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    json record;
    Reader section(site.file, list.items[i], join_path(site.path, std::to_string(i)), site.key.path + ".*", record);
    read_phase(section, space, task);
    recorded.push_back(std::move(record));
  }
  const fusion::Phase& first = task.recipe.phases.front();
  task.recipe.loss = fusion::Loss::kModel;
  task.recipe.optimizer = first.optimizer;
  task.recipe.loss_options.weighted = first.weighted;
  task.hyper.optimizer = task.hyper.phases.front().optimizer;
  task.model_file->import.own_loss = true;
  task.model_file->import.output = first.loss;
  if (first.weighted) task.model_file->import.further.push_back(first.weight);
}

}  // namespace hfta::engine::configuration
