#include "engine/parallel/start.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hfta::engine {
namespace {

using nlohmann::json;

json overrides_json(const std::vector<Override>& overrides) {
  json list = json::array();
  for (const Override& one : overrides) list.push_back(json::array({one.key_path, one.value}));
  return list;
}

std::vector<Override> overrides_from(const json& list) {
  std::vector<Override> overrides;
  for (const json& pair : list) {
    overrides.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
  }
  return overrides;
}

}  // namespace

json start_json(const TrainerOptions& options) {
  const StudyConfig& config = options.config;
  json start = {{"text", config.text},
                {"file", config.file.string()},
                {"overrides", overrides_json(config.overrides)},
                {"device", options.device},
                {"label", options.label},
                {"sharers", options.sharers},
                {"data_root", options.data_root.string()},
                {"cpus", options.cpus}};
  if (config.choice)
    start["choice"] = {{"keys", overrides_json(config.choice->keys)}, {"reason", config.choice->reason}};
  if (options.threads) start["threads"] = *options.threads;
  return start;
}

TrainerOptions options_from(const json& start) {
  std::optional<AutoChoice> choice;
  if (start.contains("choice")) {
    choice = AutoChoice{overrides_from(start.at("choice").at("keys")), start.at("choice").at("reason")};
  }
  TrainerOptions options{parse_config(start.at("text"), start.at("file").get<std::string>(),
                                      overrides_from(start.at("overrides")), choice),
                         start.at("device"),
                         start.at("label"),
                         start.at("sharers"),
                         start.at("data_root").get<std::string>(),
                         {}};
  if (start.contains("threads")) options.threads = start.at("threads").get<int>();
  options.cpus = start.at("cpus").get<std::vector<int>>();
  return options;
}

}  // namespace hfta::engine
