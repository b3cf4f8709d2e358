#include "engine/driver/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/driver/budget.hpp"
#include "engine/driver/history_json.hpp"
#include "engine/driver/strategy.hpp"
#include "engine/driver/trial_table.hpp"
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

using Fingerprints = std::map<std::string, std::string>;  // by ModelFacts::file

// The store's JSON of a config: what decides results, and what the config was read from.
std::string pack(const StudyConfig& config, const ConfigOrigin& origin, const Fingerprints& models, json prior) {
  json set = json::array();
  for (const Override& o : origin.overrides) set.push_back({o.key_path, o.value});
  json packed = {{"config", json::parse(config.normalized)}, {"file", origin.file.string()}, {"set", std::move(set)}};
  if (!models.empty()) packed["models"] = models;
  if (!prior.empty()) packed["prior"] = std::move(prior);
  if (config.choice && !config.choice->reason.empty()) {
    json keys = json::array();
    for (const Override& key : config.choice->keys) keys.push_back({key.key_path, key.value});
    packed["choice"] = {{"keys", std::move(keys)}, {"reason", config.choice->reason}};
  }
  return packed.dump();
}

// Those that `known` has not, added; the same file with another content is an error.
Fingerprints with_models(Fingerprints known, const std::vector<ModelFacts>& models, const StudyConfig& config) {
  for (const ModelFacts& model : models) {
    const auto [entry, is_new] = known.emplace(model.file, model.fingerprint);
    if (is_new || entry->second == model.fingerprint) continue;
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{}: model.file: found another {} (fingerprint {}) than study '{}' was begun with ({}); "
                    "--fresh starts a new study beside it",
                    config.file.string(), printable(model.file), model.fingerprint, config.study, entry->second));
  }
  return known;
}

json unpack(const storage::StudyRecord& stored) {
  json packed = json::parse(stored.config_json, nullptr, /*allow_exceptions=*/false);
  const bool ours =
      packed.is_object() && packed.contains("config") && packed.contains("file") && packed.contains("set");
  if (!ours) throw not_ours(stored);
  return packed;
}

// As pack() writes them. Throws json::exception.
std::vector<Override> keys_in(const json& pairs) {
  std::vector<Override> keys;
  for (const json& pair : pairs) keys.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
  return keys;
}

bool has_test_data(const StudyConfig& config, const trials::Params& params) {
  const fusion::DataSource data = config.task(params).data;
  return data.test.has_value() || !data.test_file.empty();
}

}  // namespace

storage::StudyRecord new_record(const StudyConfig& config, const ConfigOrigin& origin,
                                const std::vector<ModelFacts>& models, const search::History& prior) {
  storage::StudyRecord record;
  record.name = config.study;
  record.objectives = config.objectives;
  record.space = config.space;
  record.config = config.text;
  record.config_json = pack(config, origin, with_models({}, models, config), history_json(prior));
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
  const json packed = unpack(stored);
  const auto models = packed.find("models");
  if (models == packed.end()) return {};
  try {
    return models->get<Fingerprints>();
  } catch (const json::exception&) {
    throw not_ours(stored);
  }
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
                               const ConfigOrigin& origin, const std::vector<ModelFacts>& models) {
  const std::vector<std::string> differences =
      config_differences(unpack(stored).at("config").dump(), config.normalized);
  if (!differences.empty()) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: study '{}' was begun with another config: {}; --fresh starts a new one beside it",
                            config.file.string(), config.study, join(differences, "; ")));
  }
  storage::StudyRecord record = stored;
  record.config = config.text;
  record.config_json = pack(config, origin, with_models(model_fingerprints(stored), models, config),
                            unpack(stored).value("prior", json::array()));
  record.run_caps = next_caps(stored.run_caps, config);
  return record;
}

bool is_finished(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record) {
  TrialTable ledger(config, record.run_caps);
  ledger.restore(store);
  const std::vector<const trials::Trial*> best = ledger.best_trials();
  if (end_of(config, {record.progress.seconds, ledger.epochs(), ledger.best_value()}).empty()) {
    if (!ledger.finished() || (ledger.has_room() && !store.enqueued(config.study).empty())) return false;
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
