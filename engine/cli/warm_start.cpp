#include "engine/cli/warm_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/output.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/goals/selection.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/report/words.hpp"
#include "search/completion.hpp"
#include "search/constraints.hpp"
#include "search/methods.hpp"
#include "search/repetition.hpp"
#include "search/space.hpp"
#include "storage/optuna_encoding.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kMostTrials = 10'000;

[[noreturn]] void fail(const StudyConfig& config, const std::string& message) {
  throw Error(ErrorKind::kConfig, fmt::format("{}: warm_start: {}", config.file.string(), message));
}

// A trial's parameters as the space has them, or why they are no configuration of it.
struct Match {
  std::optional<trials::Params> params;
  std::string why_not;
};

// The first parameter that applies beside `given` and is not among them.
std::string missing_of(const trials::Space& space, const trials::Params& given) {
  for (const trials::Parameter& parameter : space) {
    if (trials::find_value(given, parameter.name) != nullptr) continue;
    trials::Params with = given;
    with.emplace_back(parameter.name, search::extremes(parameter.distribution).front());
    if (trials::find_value(trials::applying(space, with), parameter.name) != nullptr) return parameter.name;
  }
  return "";
}

Match matching(const StudyConfig& config, const trials::Params& params) {
  const trials::Space& space = config.searched();
  trials::Params all;
  for (const trials::Parameter& parameter : space) {
    const trials::ParamValue* value = trials::find_value(params, parameter.name);
    if (value == nullptr) continue;
    auto admitted = search::admit(parameter.distribution, *value);
    if (!admitted) {
      return {std::nullopt, "a value of " + printable(parameter.name) + " that this study's cannot have"};
    }
    all.emplace_back(parameter.name, std::move(*admitted));
  }
  trials::Params applying = trials::applying(space, all);
  if (!trials::is_whole(space, applying)) return {std::nullopt, "no " + printable(missing_of(space, all))};
  if (const search::Constraint* one = search::broken(config.constraints, applying)) {
    return {std::nullopt, "values that the constraint '" + printable(one->text()) + "' excludes"};
  }
  return {std::move(applying), ""};
}

// "; 12 have no lr"; "" if all trials are of the space.
std::string text_of(const std::map<std::string, int>& reasons) {
  std::string text;
  for (const auto& [why, count] : reasons) text += fmt::format("; {} {} {}", count, count == 1 ? "has" : "have", why);
  return text;
}

// Replaces each value by the one that is selected up to its epoch; values that are not finite stay.
std::vector<double> selected(std::vector<double> values, const StudyConfig& config) {
  std::optional<double> last;
  for (double& value : values) {
    if (!std::isfinite(value)) continue;
    if (is_selected(config, value, last)) last = value;
    value = *last;
  }
  return values;
}

bool has_ended(const trials::Trial& trial) {
  return trial.state != trials::State::kRunning && trial.state != trials::State::kWaiting;
}

// A trial that does not meet Optuna's constraints says where to keep away, as one that failed does.
search::SeenTrial seen(const trials::Trial& trial, const std::string& metric, const StudyConfig& config) {
  search::SeenTrial one{trials::latest_params(trial)};
  if (has_ended(trial)) one.ended = trial.feasible ? trial.state : trials::State::kFail;
  if (!trial.feasible) return one;
  one.curve = selected(curve_of(trial, metric), config);
  one.values = trial.values;
  return one;
}

// What a study's learner would have seen of its trials: with repetitions, its configurations.
struct Earlier {
  search::History ended;
  const char* noun = "ended trials";
};

Earlier read_earlier(storage::Store& store, const storage::StudyRecord& record, const StudyConfig& config) {
  const trials::Repetitions repetitions = repetitions_of(record);
  const trials::Objective& objective = record.objectives.front();
  const std::vector<int> draws = store.draws(record.name);  // before the trials, see Store::draws
  const std::vector<trials::Trial> trials = store.trials(record.name);
  std::vector<const trials::Trial*> in_order;
  if (repetitions.any()) {
    in_order = trials::in_order(trials, draws);
  } else {
    for (const trials::Trial& trial : trials) in_order.push_back(&trial);
  }
  search::History all;
  for (const trials::Trial* trial : in_order) all.push_back(seen(*trial, objective.metric, config));
  Earlier earlier{search::by_configuration(all, repetitions, objective.goal)};
  std::erase_if(earlier.ended, [](const search::SeenTrial& one) { return !one.ended; });
  if (repetitions.any()) earlier.noun = "ended configurations";
  return earlier;
}

// Throws unless metrics and goals are the same, in the same order. Optuna need not have named a metric.
void check_objectives(const StudyConfig& config, const trials::Objectives& found) {
  bool same = found.size() == config.objectives.size();
  for (std::size_t i = 0; same && i < found.size(); ++i) {
    const bool named = !found[i].metric.empty() && found[i].metric != storage::unnamed_metric(i);
    same = found[i].goal == config.objectives[i].goal && (!named || found[i].metric == config.objectives[i].metric);
  }
  if (same) return;
  fail(config, fmt::format("found a study of another metric or goal ({}), wanted {}", objectives_text(found),
                           objectives_text(config.objectives)));
}

}  // namespace

search::History read_prior(const StudyConfig& config) {
  if (!config.warm_start) return {};
  const search::Method& method = search::method(config.method);
  if (!search::learns(method, config.method_options)) {
    tell(fmt::format("warm start: method {} does not learn from trials; it begins as without", config.method));
    return {};
  }
  const WarmStart& from = *config.warm_start;
  const std::unique_ptr<storage::Store> store = storage::open_store_if_made(from.storage, storage::OpenMode::kReadOnly);
  if (!store) fail(config, fmt::format("storage: found no store {}", printable(from.storage)));
  const std::optional<storage::StudyRecord> record = store->find(from.study);
  if (!record) {
    std::vector<std::string> names;
    for (const storage::StudySummary& one : store->studies()) names.push_back(printable(one.name));
    fail(config, fmt::format("study: found no study '{}' in {}{}", printable(from.study), printable(from.storage),
                             suggestion(from.study, names)));
  }
  check_objectives(config, record->objectives);
  auto [ended, noun] = read_earlier(*store, *record, config);
  const std::size_t first = ended.size() > kMostTrials ? ended.size() - kMostTrials : 0;
  search::History prior;
  std::map<std::string, int> reasons;
  for (std::size_t i = first; i < ended.size(); ++i) {
    auto [params, why_not] = matching(config, ended[i].params);
    if (!params) {
      ++reasons[why_not];
      continue;
    }
    prior.push_back(std::move(ended[i]));
    prior.back().params = std::move(*params);
  }
  tell(fmt::format("{}warm start: {} of {} {} of study '{}' are of this space{}", prior.empty() ? "warning: " : "",
                   prior.size(), ended.size(), noun, printable(from.study), text_of(reasons)));
  const auto mute =
      std::count_if(prior.begin(), prior.end(), [](const search::SeenTrial& one) { return one.curve.empty(); });
  if (method.reads_curves && mute > 0) {
    tell(
        fmt::format("warning: warm start: {} of these have no values by epoch; {} learns nothing from them, as tpe, "
                    "gp, cmaes and evolution would",
                    mute, config.method));
  }
  return prior;
}

}  // namespace hfta::engine
