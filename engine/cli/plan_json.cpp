#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/cli/plan_memory.hpp"
#include "engine/cli/plan_report.hpp"
#include "trials/json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;
using trials::Distribution;

// The rules' names; a single rule is a word, as in earlier versions.
ordered_json stopping_json(const StudyConfig& config) {
  if (config.early_stopping.empty()) return "none";
  if (config.early_stopping.size() == 1) return config.early_stopping.front().rule;
  ordered_json names = ordered_json::array();
  for (const search::Stopping& stopping : config.early_stopping) names.push_back(stopping.rule);
  return names;
}

ordered_json parameter_json(const StudyConfig& config, const trials::Parameter& p) {
  const Distribution& d = p.distribution;
  ordered_json json = {{"name", p.name}, {"distribution", trials::name_of(d.kind)}};
  if (!d.values.empty()) {
    for (const trials::ParamValue& value : d.values) json["values"].emplace_back(trials::value_json(value));
  } else if (is_bounded(d.kind)) {
    json["min"] = d.min;
    json["max"] = d.max;
  } else {
    json["mu"] = d.mu;
    json["sigma"] = d.sigma;
  }
  json["fusible"] = !config.shape_changing.contains(p.name);
  for (const trials::Condition& condition : p.when) {
    for (const trials::ParamValue& value : condition.values)
      json["when"][condition.parameter].emplace_back(trials::value_json(value));
  }
  return json;
}

ordered_json partition_json(const Partition& p) {
  ordered_json lowerings = ordered_json::object();
  for (const auto& [op, lowering] : p.plan.lowerings) lowerings[op] = lowering;
  const std::optional<std::int64_t> bytes = p.plan.bytes(p.plan.width);
  ordered_json ways = ordered_json::array(), refused = ordered_json::object();
  for (const MeasuredWay& way : p.ways) {
    if (!way.why_not.empty()) {
      refused[way.lowering] = way.why_not;
      continue;
    }
    ways.push_back({{"lowering", way.lowering},
                    {"slot_step_s", way.slot_step_seconds},
                    {"samples_per_s", way.samples_per_second},
                    {"chosen", way.chosen}});
    if (!way.note.empty()) ways.back()["note"] = way.note;
  }
  ordered_json groups = ordered_json::array();
  for (const GroupPlan& group : p.plan.groups) {
    groups.push_back({{"params", group.params}, {"parameters", group.parameters}});
  }
  ordered_json features = nullptr;
  if (p.plan.features) {
    features = {{"shared", p.plan.features->shared},
                {"samples", p.plan.features->samples},
                {"bytes_per_sample", p.plan.features->bytes_per_sample},
                {"budget", p.plan.features->budget},
                {"kept_bytes", p.plan.features->kept_bytes},
                {"prevented", p.plan.features->prevented}};
  }
  return {{"partition", p.name},
          {"trials", p.trials},
          {"width", p.plan.width},
          {"widths", p.widths},
          {"parameters", p.plan.parameters},
          {"frozen", p.plan.frozen},
          {"groups", std::move(groups)},
          {"features", std::move(features)},
          {"model", p.plan.model ? ordered_json(p.plan.model->file) : ordered_json(nullptr)},
          {"bytes_per_slot",
           bytes ? ordered_json(p.plan.memory->slot + p.plan.memory->activations) : ordered_json(nullptr)},
          {"bytes", bytes ? ordered_json(*bytes) : ordered_json(nullptr)},
          {"memory", memory_json(p.plan)},
          {"lowerings", std::move(lowerings)},
          {"measured", std::move(ways)},
          {"not_measured", std::move(refused)}};
}

ordered_json model_json(const ModelFacts& model) {
  return {{"file", model.file},
          {"torch_version", model.torch_version},
          {"fingerprint", model.fingerprint},
          {"inputs", model.inputs},
          {"batch_size", model.fixed_batch > 0 ? ordered_json(model.fixed_batch) : ordered_json(nullptr)},
          {"notes", model.notes}};
}

}  // namespace

std::string plan_json(const StudyConfig& config, const Plan& plan) {
  ordered_json json = {{"study", config.study},
                       {"method", config.method},
                       {"method_reason", config.choice ? ordered_json(config.choice->reason) : ordered_json(nullptr)},
                       {"early_stopping", stopping_json(config)},
                       {"metric", config.objectives.front().metric},
                       {"direction", name_of(config.objectives.front().goal)},
                       {"repeat", config.repetitions.seeds},
                       {"folds", config.repetitions.folds},
                       {"trials", plan.trials ? ordered_json(*plan.trials) : ordered_json(nullptr)},
                       {"trial_epochs", plan.epochs ? ordered_json(*plan.epochs) : ordered_json(nullptr)},
                       {"max_epochs", plan.max_epochs},
                       {"devices", plan.devices},
                       {"drawn", plan.drawn}};
  if (config.has_several_objectives()) {
    json["objectives"] = trials::objectives_json(config.objectives);
  }
  json["parameters"] = ordered_json::array();
  for (const trials::Parameter& p : config.space) json["parameters"].push_back(parameter_json(config, p));
  json["models"] = ordered_json::array();
  for (const ModelFacts* model : models_of(plan)) json["models"].push_back(model_json(*model));
  json["partitions"] = ordered_json::array();
  for (const Partition& p : plan.partitions) json["partitions"].push_back(partition_json(p));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hfta::engine
