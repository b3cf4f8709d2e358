#include "engine/driver/study/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/stamp.hpp"
#include "base/text.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/goals/budget.hpp"
#include "engine/driver/study/history_json.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/study_record/study_record.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

Error not_ours(const storage::StudyRecord& stored) {
  return {ErrorKind::kConfig,
          fmt::format("study '{}': found one that hfta-tune did not make, wanted a config in the store; "
                      "run one of hfta-tune's under another name (study: ..., or --fresh)",
                      printable(stored.name))};
}

std::string name_of(const DataFacts& data) { return data.file + " " + data.reading; }

KeptConfig::Keys kept_keys(const std::vector<Override>& keys) {
  KeptConfig::Keys kept;
  for (const Override& key : keys) kept.emplace_back(key.key_path, key.value);
  return kept;
}

std::vector<Override> keys_in(const KeptConfig::Keys& kept) {
  std::vector<Override> keys;
  for (const auto& [path, value] : kept) keys.push_back({path, value});
  return keys;
}

// What `held` becomes under this config, which replaces the one that it has.
KeptConfig with_config(KeptConfig held, const StudyConfig& config, const ConfigOrigin& origin) {
  held.config = nlohmann::json::parse(config.normalized);
  held.file = origin.file.string();
  held.set = kept_keys(origin.overrides);
  held.choice.reset();
  if (config.choice) held.choice = KeptConfig::Choice{kept_keys(config.choice->keys), config.choice->reason};
  return held;
}

// Adds files that `held` lacks; a file that it has with another content is an error.
KeptConfig with_files(KeptConfig held, const StudyFiles& files, const StudyConfig& config) {
  const auto hold = [&](auto& known, const std::string& name, const std::string& now, const std::string& what) {
    const auto [entry, is_new] = known.emplace(name, now);
    if (is_new || entry->second == now) return;
    throw Error(ErrorKind::kConfig, fmt::format("{}: {} (fingerprint {}) than study '{}' was begun with ({}); --fresh "
                                                "starts a new study beside it",
                                                config.file.string(), what, now, config.study, entry->second));
  };
  const auto note = [&](const FileStamps& stamps) {
    for (const auto& [file, stamp] : stamps) held.stamps[path_from(config.folder, file).string()] = stamp;
  };
  for (const ModelFacts& model : files.models) {
    hold(held.models, model.file, model.fingerprint, "model.file: found another " + printable(model.file));
    note(model.stamps);
  }
  for (const DataFacts& data : files.data) {
    hold(held.data, name_of(data), data.fingerprint,
         fmt::format("data: found other numbers in {} or the validation or test data", printable(data.file)));
    note(data.stamps);
  }
  return held;
}

KeptConfig kept_of(const storage::StudyRecord& stored) {
  std::optional<KeptConfig> kept = unpack(stored);
  if (!kept) throw not_ours(stored);
  return *std::move(kept);
}

bool has_test_data(const StudyConfig& config, const trials::Params& params) {
  const fusion::DataSource data = config.task(params).data;
  return data.test.has_value() || !data.test_file.empty();
}

}  // namespace

storage::StudyRecord new_record(const StudyConfig& config, const ConfigOrigin& origin, const StudyFiles& files,
                                const search::History& prior) {
  storage::StudyRecord record;
  record.name = config.study;
  record.objectives = config.objectives;
  record.space = config.space;
  record.config = config.text;
  KeptConfig held;
  held.prior = history_json(prior);
  record.config_json = pack(with_config(with_files(std::move(held), files, config), config, origin));
  record.run_caps = next_caps({}, config);
  return record;
}

ConfigOrigin origin_of(const storage::StudyRecord& stored) {
  const KeptConfig kept = kept_of(stored);
  return {kept.file, keys_in(kept.set)};
}

std::map<std::string, std::string> model_fingerprints(const storage::StudyRecord& stored) {
  return kept_of(stored).models;
}

std::vector<std::filesystem::path> changed_files(const storage::StudyRecord& stored,
                                                 const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> changed;
  const KeptConfig kept = kept_of(stored);
  for (const auto& [file, stamp] : kept.stamps) {
    if (stamp_of(folder / file) != stamp) changed.push_back(folder / file);
  }
  return changed;
}

AutoChoice choice_of(const storage::StudyRecord& stored) {
  const KeptConfig kept = kept_of(stored);
  if (kept.choice) return {keys_in(kept.choice->keys), kept.choice->reason};
  const std::string method = settings_of(kept, stored.name).method;
  if (method.empty()) throw damaged_record(stored.name, "/config/method", nullptr, "a method");
  return {{{"method", method}}, ""};
}

search::History prior_of(const storage::StudyRecord& stored) {
  const std::optional<KeptConfig> kept = unpack(stored);
  if (!kept) return {};
  try {
    return history_from(kept->prior);
  } catch (const nlohmann::json::exception&) {
    throw damaged_record(stored.name, "/prior", &kept->prior, "the trials of an earlier study");
  }
}

trials::Repetitions repetitions_of(const storage::StudyRecord& stored) {
  const std::optional<KeptConfig> kept = unpack(stored);
  return kept ? settings_of(*kept, stored.name).repetitions : trials::Repetitions{};
}

storage::StudyRecord continued(const storage::StudyRecord& stored, const StudyConfig& config,
                               const ConfigOrigin& origin, const StudyFiles& files) {
  KeptConfig held = kept_of(stored);
  const std::vector<std::string> differences = config_differences(held.config.dump(), config.normalized);
  if (!differences.empty()) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: study '{}' was begun with another config: {}; --fresh starts a new one beside it",
                            config.file.string(), config.study, join(differences, "; ")));
  }
  storage::StudyRecord record = stored;
  record.config = config.text;
  record.config_json = pack(with_config(with_files(std::move(held), files, config), config, origin));
  record.run_caps = next_caps(stored.run_caps, config);
  return record;
}

bool is_finished(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record) {
  TrialTable table(config, record.run_caps);
  (void)table.restore(store);
  const std::vector<const trials::Trial*> best = table.best_trials();
  if (end_of(config, {record.progress.seconds, table.epochs(), table.best_value()}).empty()) {
    if (!table.finished() || (table.has_room() && !store.enqueued(config.study).empty())) return false;
  }
  return std::all_of(best.begin(), best.end(), [&](const trials::Trial* one) {
    return !one->test_metrics.empty() || !has_test_data(config, one->params);
  });
}

std::vector<const trials::Trial*> best_trials(const StudyConfig& config, storage::Store& store,
                                              const std::vector<trials::Trial>& trials) {
  if (!config.repetitions.any()) return trials::best_of(trials, config.objectives);
  const trials::Trial* best = trials::best_of(trials::in_order(trials, store.draws(config.study)), config.repetitions,
                                              config.objectives.front().goal);
  return best == nullptr ? std::vector<const trials::Trial*>{} : std::vector{best};
}

std::string fresh_name(storage::Store& store, const std::string& study) {
  for (int i = 2;; ++i) {
    std::string name = fmt::format("{}-{}", study, i);
    if (!store.find(name)) return name;
  }
}

}  // namespace hfta::engine
