#include "engine/export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/export/adapter_files.hpp"
#include "engine/export/model_state.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/exported.hpp"

namespace hfta::engine {
namespace {

using fusion::TensorView;

// Drops tensors `optimizer.<state>.<weight>` whose weight is there, too: a layer may be called optimizer.
void drop_optimizer_state(Tensors& tensors) {
  constexpr std::string_view kPrefix = "optimizer.";
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) names.insert(tensor.name);
  std::erase_if(tensors, [&](const TensorView& tensor) {
    if (!tensor.name.starts_with(kPrefix)) return false;
    const std::size_t dot = tensor.name.find('.', kPrefix.size());
    return dot != std::string::npos && names.contains(tensor.name.substr(dot + 1));
  });
}

std::string kept_text(storage::Checkpoints& finished, const std::vector<trials::Trial>& trials) {
  std::vector<std::string> numbers;
  for (const int number : finished.trials()) {
    const auto trial = std::find_if(trials.begin(), trials.end(), [&](const auto& t) { return t.number == number; });
    // With metric.select best, trials that still run have a state here, too.
    if (trial != trials.end() && trial->state == trials::State::kComplete) numbers.push_back(std::to_string(number));
  }
  return numbers.empty() ? "none is kept" : "kept are " + join(numbers);
}

bool any_runs(const std::vector<trials::Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const auto& t) { return t.state == trials::State::kRunning; });
}

const trials::Trial& only_best(const std::vector<trials::Trial>& trials, const StudyConfig& config,
                               storage::Store& store) {
  const std::vector<const trials::Trial*> best = best_trials(config, store, trials);
  if (best.empty()) {
    throw Error(ErrorKind::kConfig,
                fmt::format("study '{}': found none that is best ({}), wanted one to export{}", config.study,
                            trials::why_none_is_best(trials), any_runs(trials) ? "; --trial takes a RUNNING one" : ""));
  }
  if (best.size() == 1) return *best.front();
  std::vector<std::string> numbers;
  numbers.reserve(best.size());
  for (const trials::Trial* trial : best) numbers.push_back(std::to_string(trial->number));
  throw Error(ErrorKind::kConfig, fmt::format("--trial: found nothing, wanted one of the {} trials on the Pareto front "
                                              "of study '{}': {}",
                                              best.size(), config.study, join(numbers)));
}

const trials::Trial& chosen(const std::vector<trials::Trial>& trials, const StudyConfig& config, storage::Store& store,
                            std::optional<int> number) {
  if (!number) return only_best(trials, config, store);
  const auto trial = std::find_if(trials.begin(), trials.end(), [&](const auto& t) { return t.number == *number; });
  if (trial != trials.end()) return *trial;
  throw Error(ErrorKind::kConfig, fmt::format("--trial: found {}, wanted a trial of study '{}', 0 to {}", *number,
                                              config.study, trials.empty() ? 0 : trials.back().number));
}

// What the trial was worth after that epoch; none where it is not recorded.
std::vector<double> values_at(const trials::Trial& trial, int epoch, const trials::Objectives& objectives) {
  const auto record =
      std::find_if(trial.epochs.begin(), trial.epochs.end(), [&](const auto& e) { return e.epoch == epoch; });
  std::vector<double> values;
  if (record == trial.epochs.end()) return values;
  for (const trials::Objective& objective : objectives) {
    const auto found = record->metrics.find(objective.metric);
    if (found == record->metrics.end()) return {};
    values.push_back(found->second);
  }
  return values;
}

// The trials whose weights are kept, in words.
std::string kept_words(const StudyConfig& config) {
  if (config.has_several_objectives()) return "the Pareto front";
  return fmt::format("the best {} finished trials", std::max(config.keep, 1));
}

// The state of a trial that is not done: the best one where the best epoch counts, else the newest. A trial that goes
// on from a copy of another one has none of its own.
std::optional<storage::Checkpoint> latest_state(int number, const StudyConfig& config, storage::StudyStates& states) {
  using storage::StateKind;
  if (states.of(StateKind::kCopied).load(number)) return std::nullopt;
  return states.of(config.select_best ? StateKind::kFinished : StateKind::kRunning).load(number);
}

// Weights, and what the trial was worth with them.
struct KeptState {
  storage::Checkpoint state;
  std::vector<double> values;
};

KeptState kept_state(const trials::Trial& trial, const StudyConfig& config, storage::StudyStates& states,
                     const std::vector<trials::Trial>& trials) {
  storage::Checkpoints& finished = states.of(storage::StateKind::kFinished);
  std::optional<storage::Checkpoint> found;
  if (trial.state == trials::State::kComplete) found = finished.load(trial.number);
  if (trial.state == trials::State::kRunning) found = latest_state(trial.number, config, states);
  if (!found) {
    throw Error(ErrorKind::kConfig,
                fmt::format("study '{}': found no weights of trial {} ({}), wanted one of {}: {}{}", config.study,
                            trial.number, trials::name_of(trial.state), kept_words(config), kept_text(finished, trials),
                            any_runs(trials) ? "; or one that is RUNNING and has a state" : ""));
  }
  std::vector<double> values = values_at(trial, found->epoch, config.objectives);
  const bool fits = trial.state == trials::State::kRunning ? !values.empty() : values == trial.values;
  if (fits) return {std::move(*found), std::move(values)};
  throw Error(
      ErrorKind::kStorage,
      fmt::format("study '{}': trial {}: found weights of epoch {}, wanted those of the epoch that its value was "
                  "measured at: the newer file is damaged or gone",
                  config.study, trial.number, found->epoch));
}

fusion::ExportedModel read_model(const ModelFile& file, const StudyConfig& config, storage::Store& store) {
  fusion::ExportedModel model = fusion::ExportedModel::read(file.file);
  const auto known = model_fingerprints(store.find(config.study).value());
  const auto trained = known.find(file.name);
  if (trained == known.end() || trained->second == model.fingerprint()) return model;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: found another model (fingerprint {}) than study '{}' trained ({}), wanted that one for "
                          "what its trials share",
                          printable(file.file.string()), model.fingerprint(), config.study, trained->second));
}

}  // namespace

std::optional<ExportFormat> export_format(const std::string& word) {
  if (word == "weights") return ExportFormat::kWeights;
  if (word == "merged") return ExportFormat::kMerged;
  if (word == "peft") return ExportFormat::kPeft;
  return std::nullopt;
}

std::vector<ExportedFile> export_trial(const StudyConfig& config, storage::Store& store, storage::StudyStates& states,
                                       std::optional<int> number, ExportFormat format) {
  const std::vector<trials::Trial> trials = store.trials(config.study);
  const trials::Trial& trial = chosen(trials, config, store, number);
  const auto [kept, values] = kept_state(trial, config, states, trials);
  Tensors tensors = fusion::parse_safetensors(kept.bytes).tensors;
  drop_optimizer_state(tensors);
  std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                 {"study", config.study},
                                                 {"trial", std::to_string(trial.number)},
                                                 {"epoch", std::to_string(kept.epoch)}};
  for (std::size_t i = 0; i < values.size(); ++i) metadata.emplace(config.objectives[i].metric, shortest(values[i]));
  const std::optional<ModelFile> file = config.task(trials::latest_params(trial)).model_file;
  if (!file && format == ExportFormat::kWeights) return {{"", fusion::write_safetensors(tensors, metadata)}};
  if (!file) {
    throw Error(ErrorKind::kConfig, fmt::format("--format: study '{}' has a model of layers, which has no adapters; "
                                                "wanted weights",
                                                config.study));
  }
  for (const fusion::Binding& bound : file->import.bind) metadata["bind." + bound.path] = shortest(bound.value);
  const fusion::ExportedModel model = read_model(*file, config, store);
  const ModelState state = state_of(model, file->import, tensors);
  if (format == ExportFormat::kWeights && !file->import.lora) {
    return {{"", fusion::write_safetensors(state.tensors, metadata)}};
  }
  const TrainedAdapters adapters(model, file->import, state, tensors);
  if (format == ExportFormat::kPeft) return adapters.peft_folder(metadata);
  return {{"", adapters.merged(metadata)}};
}

}  // namespace hfta::engine
