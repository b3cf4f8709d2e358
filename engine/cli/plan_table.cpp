#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "engine/cli/plan_memory.hpp"
#include "engine/cli/plan_report.hpp"
#include "engine/report/columns.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

using trials::Distribution;

std::string values_text(const Distribution& d) {
  if (!d.values.empty()) {
    std::vector<std::string> words;
    for (const trials::ParamValue& value : d.values) words.push_back(printable(trials::to_text(value)));
    return join(words);
  }
  return is_bounded(d.kind) ? shortest(d.min) + " .. " + shortest(d.max)
                            : "mu " + shortest(d.mu) + ", sigma " + shortest(d.sigma);
}

// "optimizer = sgd, rmsprop; hidden = 64"
std::string conditions_text(const trials::Parameter& parameter) {
  std::vector<std::string> texts;
  for (const trials::Condition& condition : parameter.when) {
    std::vector<std::string> values;
    for (const trials::ParamValue& value : condition.values) values.push_back(printable(trials::to_text(value)));
    texts.push_back(fmt::format("{} = {}", printable(condition.parameter), join(values)));
  }
  return join(texts, "; ");
}

std::string space_table(const StudyConfig& config) {
  const bool conditional = trials::is_conditional(config.space);
  std::vector<std::vector<std::string>> rows;
  for (const trials::Parameter& p : config.space) {
    rows.push_back({printable(p.name), trials::name_of(p.distribution.kind), values_text(p.distribution),
                    config.shape_changing.contains(p.name) ? "shapes: splits trials into arrays" : "slots: fused"});
    if (conditional) rows.back().push_back(conditions_text(p));
  }
  std::vector<std::string> header = {"parameter", "distribution", "values", "changes"};
  if (conditional) header.emplace_back("when");
  std::string text = in_columns(header, rows);
  for (const search::Constraint& constraint : config.constraints) {
    text += fmt::format("constraint: {}\n", printable(constraint.text()));
  }
  return text;
}

std::string budget_text(const Budget& budget) {
  std::vector<std::string> limits;
  if (budget.seconds) limits.push_back(fmt::format("{:.6g} hours", *budget.seconds / 3600));
  if (budget.epochs) limits.push_back(fmt::format("{} trial-epochs", *budget.epochs));
  return limits.empty() ? "" : fmt::format("budget: {}\n", join(limits));
}

// The width, or the width on each device where they differ.
std::string widths_text(const Partition& p) {
  const bool same = std::all_of(p.widths.begin(), p.widths.end(), [&](int width) { return width == p.plan.width; });
  return same ? std::to_string(p.plan.width) : fmt::format("{}", fmt::join(p.widths, "/"));
}

std::string partition_table(const Plan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const Partition& p : plan.partitions) {
    const std::int64_t slot = p.plan.memory ? p.plan.memory->slot + p.plan.memory->activations : 0;
    rows.push_back({p.name.empty() ? "(one for all)" : printable(p.name), std::to_string(p.trials), widths_text(p),
                    std::to_string(p.plan.parameters), std::to_string(p.plan.frozen),
                    mebibytes(static_cast<double>(slot)),
                    mebibytes(static_cast<double>(p.plan.bytes(p.plan.width).value_or(0)))});
  }
  return in_columns({"partition", "trials", "width", "weights/trial", "frozen", "MiB/slot", "MiB"}, rows);
}

// "every trial, frozen layers: run once for each of 5000 samples; 3072 bytes of each are kept, ..."
std::string features_text(const FeaturePlan& features) {
  std::string out;
  if (features.shared) {
    const std::int64_t all = features.samples * features.bytes_per_sample;
    out = fmt::format("run for all trials alike; results {} bytes per sample, {} MiB for {} samples, ",
                      features.bytes_per_sample, mebibytes(static_cast<double>(all)), features.samples);
    out += features.kept_bytes < all
               ? fmt::format("of which {:.1f} MiB are kept (array.cache): the others are computed in every epoch\n",
                             static_cast<double>(features.kept_bytes) / (1 << 20))
               : fmt::format("kept (array.cache: at most {} MiB): each sample is computed once\n",
                             mebibytes(static_cast<double>(features.budget)));
  }
  if (!features.prevented.empty()) out += printable(features.prevented) + "\n";
  return out;
}

// Partitions mostly agree: each text once, with the partitions named where they differ.
std::string frozen_text(const Plan& plan) {
  std::map<std::string, std::vector<std::string>> by_text;
  for (const Partition& p : plan.partitions) {
    if (p.plan.features) by_text[features_text(*p.plan.features)].push_back(printable(p.name));
  }
  std::string out;
  for (const auto& [text, names] : by_text) {
    const bool all = names.size() == plan.partitions.size();
    out += fmt::format("\nfrozen layers{}: {}", all ? "" : " of " + join(names, "; "), text);
  }
  return out;
}

std::string groups_table(const Plan& plan) {
  std::string out;
  for (const Partition& p : plan.partitions) {
    if (p.plan.groups.empty()) continue;
    std::int64_t others = p.plan.parameters;
    std::vector<std::vector<std::string>> rows;
    for (const GroupPlan& group : p.plan.groups) {
      rows.push_back({printable(join(group.params)), std::to_string(group.parameters)});
      others -= group.parameters;
    }
    rows.push_back({"(no group)", std::to_string(others)});
    out += fmt::format("\n{}, groups of the optimizer:\n", of_partition(p));
    out += in_columns({"parameters", "weights/trial"}, rows);
  }
  return out;
}

std::string ways_table(const Plan& plan) {
  std::string out;
  for (const Partition& p : plan.partitions) {
    if (p.ways.empty()) continue;
    std::vector<std::vector<std::string>> rows;
    for (const MeasuredWay& way : p.ways) {
      if (!way.why_not.empty()) continue;
      rows.push_back({way.lowering, fmt::format("{:.4f}", 1000 * way.slot_step_seconds),
                      fmt::format("{:.0f}", way.samples_per_second), way.chosen ? "chosen" : ""});
    }
    out += fmt::format("\n{}, one training step:\n", of_partition(p));
    out += in_columns({"way to run", "ms/trial", "trial-samples/s", ""}, rows);
    for (const MeasuredWay& way : p.ways) {
      if (!way.why_not.empty()) out += fmt::format("not {}: {}\n", way.lowering, printable(way.why_not));
      if (!way.note.empty()) out += fmt::format("{}: {}\n", way.lowering, printable(way.note));
    }
  }
  return out;
}

// Partitions mostly agree on their lowerings: each op once, with the partitions named where they differ.
std::string lowering_table(const Plan& plan) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_op;
  for (const Partition& p : plan.partitions) {
    for (const auto& [op, lowering] : p.plan.lowerings) by_op[op][lowering].push_back(printable(p.name));
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [op, lowerings] : by_op) {
    for (const auto& [lowering, names] : lowerings) {
      rows.push_back({printable(op), printable(lowering), lowerings.size() > 1 ? join(names, "; ") : "all"});
    }
  }
  return rows.empty() ? "" : "\n" + in_columns({"op", "lowering", "partitions"}, rows);
}

// "asha (min_epochs 1, eta 3)"
std::string stopping_text(const search::Stopping& stopping) {
  std::vector<std::string> words;
  for (const auto& [field, value] : fields_read(stopping)) words.push_back(fmt::format("{} {}", field, value));
  return fmt::format("{} ({})", stopping.rule, join(words));
}

std::string rungs_text(const StudyConfig& config) {
  const search::Method& method = search::method(config.method);
  std::string text = method.plan_text == nullptr ? "" : method.plan_text(config.method_options) + "\n";
  for (const search::Stopping& stopping : config.early_stopping) {
    text +=
        fmt::format("early stopping: {}; {}\n", stopping_text(stopping), search::stopping_rule(stopping.rule).sentence);
  }
  return text;
}

std::string repetitions_text(const StudyConfig& config, const Plan& plan) {
  if (!config.repetitions.any()) return "";
  const std::string all = plan.trials ? fmt::format("{}, ", *plan.trials / config.repetitions.count()) : "";
  return fmt::format("configurations: {}each with {} trials (repeat {}, folds {}), ranked by {}\n", all,
                     config.repetitions.count(), config.repetitions.seeds, config.repetitions.folds,
                     trials::name_of(config.repetitions.rank));
}

std::string models_text(const Plan& plan) {
  std::string out;
  for (const ModelFacts* model : models_of(plan)) {
    out += fmt::format("model {}: exported by torch {}, inputs {}; ", printable(model->file),
                       printable(model->torch_version), printable(join(model->inputs)));
    out +=
        model->fixed_batch == 0
            ? "any batch size\n"
            : fmt::format("batch size {} only, so that an epoch's last short batch is left out\n", model->fixed_batch);
    for (const std::string& note : model->notes) out += "note: " + printable(note) + "\n";
  }
  return out;
}

}  // namespace

std::string plan_table(const StudyConfig& config, const Plan& plan) {
  std::string out =
      fmt::format("study {}: {}, {}\n", printable(config.study), config.method, objectives_text(config.objectives));
  if (config.choice && !config.choice->reason.empty()) out += printable(config.choice->text()) + "\n";
  const std::string epochs =
      config.early_stopping.empty()
          ? fmt::format("{} trial-epochs if none fails", plan.epochs.value_or(0))
          : fmt::format("about {} trial-epochs, as early stopping decides", plan.epochs.value_or(0));
  out += plan.trials && *plan.trials != kEndless
             ? fmt::format("trials: {}, {}, at most {} epochs each\n", *plan.trials, epochs, plan.max_epochs)
             : fmt::format("trials: no limit (run_cap), {} epochs each\n", plan.max_epochs);
  out += budget_text(config.budget) + repetitions_text(config, plan) + rungs_text(config) + models_text(plan) +
         fmt::format("devices: {}\n\n", join(plan.devices));
  out += space_table(config) + "\n" + partition_table(plan);
  if (plan.drawn < plan.trials.value_or(plan.drawn + 1)) {
    out += fmt::format("(trials of each partition among the first {})\n", plan.drawn);
  }
  return out + groups_table(plan) + frozen_text(plan) + memory_table(config, plan) + lowering_table(plan) +
         ways_table(plan);
}

}  // namespace hfta::engine
