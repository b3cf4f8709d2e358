#include "engine/driver/study/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/stamp.hpp"
#include "base/text.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/goals/budget.hpp"
#include "engine/driver/study/history_json.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

Error not_ours(const storage::StudyRecord& stored) {
  return {ErrorKind::kConfig,
          fmt::format("study '{}': found one that hfta-tune did not make, wanted a config in the store; "
                      "choose another name (study: ...) or --fresh",
                      printable(stored.name))};
}

// Fingerprints of the files that a study is held to, and what tells whether these were written since.
struct Held {
  std::map<std::string, std::string> models;  // fingerprints by ModelFacts::file
  std::map<std::string, std::string> data;    // fingerprints by name_of(DataFacts)
  std::map<std::string, std::string> stamps;  // by path from the config's folder on
};

std::string name_of(const DataFacts& data) { return data.file + " " + data.reading; }

// A config as the store's JSON: the keys that decide results, and the origin of the config.
std::string pack(const StudyConfig& config, const ConfigOrigin& origin, const Held& held, json prior) {
  json set = json::array();
  for (const Override& o : origin.overrides) set.push_back({o.key_path, o.value});
  json packed = {{"config", json::parse(config.normalized)}, {"file", origin.file.string()}, {"set", std::move(set)}};
  if (!held.models.empty()) packed["models"] = held.models;
  if (!held.data.empty()) packed["data"] = held.data;
  if (!held.stamps.empty()) packed["stamps"] = held.stamps;
  if (!prior.empty()) packed["prior"] = std::move(prior);
  if (config.choice && !config.choice->reason.empty()) {
    json keys = json::array();
    for (const Override& key : config.choice->keys) keys.push_back({key.key_path, key.value});
    packed["choice"] = {{"keys", std::move(keys)}, {"reason", config.choice->reason}};
  }
  return packed.dump();
}

// Adds files that `held` lacks; a file that it has with another content is an error.
Held with_files(Held held, const StudyFiles& files, const StudyConfig& config) {
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

json unpack(const storage::StudyRecord& stored) {
  json packed = json::parse(stored.config_json, nullptr, /*allow_exceptions=*/false);
  const bool ours =
      packed.is_object() && packed.contains("config") && packed.contains("file") && packed.contains("set");
  if (!ours) throw not_ours(stored);
  return packed;
}

// Reads keys as pack() writes them. Throws json::exception.
std::vector<Override> keys_in(const json& pairs) {
  std::vector<Override> keys;
  for (const json& pair : pairs) keys.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
  return keys;
}

// The texts in the member `key` of what unpack() gave; empty if there is none.
std::map<std::string, std::string> texts_in(const json& packed, const char* key, const storage::StudyRecord& stored) {
  const auto found = packed.find(key);
  if (found == packed.end()) return {};
  try {
    return found->get<std::map<std::string, std::string>>();
  } catch (const json::exception&) {
    throw not_ours(stored);
  }
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
  record.config_json = pack(config, origin, with_files({}, files, config), history_json(prior));
  record.run_caps = next_caps({}, config);
  return record;
}

ConfigOrigin origin_of(const storage::StudyRecord& stored) {
  const json packed = unpack(stored);
  try {
    ConfigOrigin origin;
    origin.file = packed.at("file").get<std::string>();
    origin.overrides = keys_in(packed.at("set"));
    return origin;
  } catch (const json::exception&) {
    throw not_ours(stored);
  }
}

std::map<std::string, std::string> model_fingerprints(const storage::StudyRecord& stored) {
  return texts_in(unpack(stored), "models", stored);
}

std::vector<std::filesystem::path> changed_files(const storage::StudyRecord& stored,
                                                 const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> changed;
  for (const auto& [file, stamp] : texts_in(unpack(stored), "stamps", stored)) {
    if (stamp_of(folder / file) != stamp) changed.push_back(folder / file);
  }
  return changed;
}

AutoChoice choice_of(const storage::StudyRecord& stored) {
  const json packed = unpack(stored);
  try {
    const auto choice = packed.find("choice");
    if (choice == packed.end()) return {{{"method", packed.at("config").at("method").get<std::string>()}}, ""};
    return {keys_in(choice->at("keys")), choice->at("reason").get<std::string>()};
  } catch (const json::exception&) {
    throw not_ours(stored);
  }
}

search::History prior_of(const storage::StudyRecord& stored) {
  if (stored.config_json.empty()) return {};
  const json packed = json::parse(stored.config_json, nullptr, /*allow_exceptions=*/false);
  if (!packed.is_object() || !packed.contains("prior")) return {};
  try {
    return history_from(packed.at("prior"));
  } catch (const json::exception&) {
    throw not_ours(stored);
  }
}

storage::StudyRecord continued(const storage::StudyRecord& stored, const StudyConfig& config,
                               const ConfigOrigin& origin, const StudyFiles& files) {
  const json packed = unpack(stored);
  const std::vector<std::string> differences = config_differences(packed.at("config").dump(), config.normalized);
  if (!differences.empty()) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: study '{}' was begun with another config: {}; --fresh starts a new one beside it",
                            config.file.string(), config.study, join(differences, "; ")));
  }
  storage::StudyRecord record = stored;
  record.config = config.text;
  const Held held = {texts_in(packed, "models", stored), texts_in(packed, "data", stored),
                     texts_in(packed, "stamps", stored)};
  record.config_json = pack(config, origin, with_files(held, files, config), packed.value("prior", json::array()));
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
