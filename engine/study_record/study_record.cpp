#include "engine/study_record/study_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/text.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

constexpr int kMostRepetitions = 1000;

/// A member of a study's record, by its JSON pointer; a member that is not there is absent.
class Member {
 public:
  Member(const std::string& study, const json& record, std::string pointer)
      : study_(study), record_(record), pointer_(std::move(pointer)) {
    const json::json_pointer place(pointer_);
    if (record_.contains(place)) value_ = &record_.at(place);
  }

  [[nodiscard]] bool present() const { return value_ != nullptr; }
  [[nodiscard]] Member at(const std::string& key) const { return {study_, record_, pointer_ + "/" + key}; }
  [[noreturn]] void fail(const std::string& wanted) const { throw damaged_record(study_, pointer_, value_, wanted); }

  [[nodiscard]] std::string text() const {
    if (!present() || !value_->is_string()) fail("a text");
    return value_->get<std::string>();
  }
  [[nodiscard]] std::string text_or(const std::string& otherwise) const { return present() ? text() : otherwise; }
  [[nodiscard]] int count_or(int otherwise) const {
    if (!present()) return otherwise;
    const bool fits = value_->is_number_integer() && *value_ >= 1 && *value_ <= kMostRepetitions;
    if (!fits) fail(fmt::format("an integer from 1 to {}", kMostRepetitions));
    return value_->get<int>();
  }
  [[nodiscard]] json object() const {
    if (!present() || !value_->is_object()) fail("an object");
    return *value_;
  }
  [[nodiscard]] json list_or_none() const {
    if (!present()) return json::array();
    if (!value_->is_array()) fail("a list");
    return *value_;
  }
  [[nodiscard]] KeptConfig::Keys keys() const {
    if (!present() || !value_->is_array()) fail("a list");
    KeptConfig::Keys keys;
    for (std::size_t i = 0; i < value_->size(); ++i) {
      const json& pair = (*value_)[i];
      const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string();
      if (!is_pair) at(std::to_string(i)).fail("a list of two texts, a key and its value");
      keys.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
    }
    return keys;
  }
  [[nodiscard]] KeptConfig::Texts texts() const {
    if (!present()) return {};
    const bool are_texts = value_->is_object() &&
                           std::all_of(value_->begin(), value_->end(), [](const json& one) { return one.is_string(); });
    if (!are_texts) fail("an object of texts");
    return value_->get<KeptConfig::Texts>();
  }

 private:
  const std::string& study_;
  const json& record_;
  std::string pointer_;
  const json* value_ = nullptr;
};

json keys_json(const KeptConfig::Keys& keys) {
  json pairs = json::array();
  for (const auto& [path, value] : keys) pairs.push_back({path, value});
  return pairs;
}

}  // namespace

std::string pack(const KeptConfig& config) {
  json packed = {{"config", config.config}, {"file", config.file}, {"set", keys_json(config.set)}};
  if (!config.models.empty()) packed["models"] = config.models;
  if (!config.data.empty()) packed["data"] = config.data;
  if (!config.stamps.empty()) packed["stamps"] = config.stamps;
  if (!config.prior.empty()) packed["prior"] = config.prior;
  if (config.choice && !config.choice->reason.empty()) {
    packed["choice"] = {{"keys", keys_json(config.choice->keys)}, {"reason", config.choice->reason}};
  }
  return packed.dump();
}

std::optional<KeptConfig> unpack(const storage::StudyRecord& stored) {
  const json packed = json::parse(stored.config_json, nullptr, /*allow_exceptions=*/false);
  const bool ours =
      packed.is_object() && packed.contains("config") && packed.contains("file") && packed.contains("set");
  if (!ours) return std::nullopt;
  const Member root(stored.name, packed, "");
  KeptConfig config;
  config.config = root.at("config").object();
  config.file = root.at("file").text();
  config.set = root.at("set").keys();
  config.models = root.at("models").texts();
  config.data = root.at("data").texts();
  config.stamps = root.at("stamps").texts();
  config.prior = root.at("prior").list_or_none();
  if (const Member choice = root.at("choice"); choice.present()) {
    config.choice = KeptConfig::Choice{choice.at("keys").keys(), choice.at("reason").text()};
  }
  return config;
}

KeptSettings settings_of(const KeptConfig& config, const std::string& study) {
  const json packed = {{"config", config.config}};
  const Member root(study, packed, "/config");
  KeptSettings settings;
  settings.method = root.at("method").text_or("");
  settings.select_best = root.at("metric/select").text_or("") == "best";
  settings.repetitions = {root.at("repeat").count_or(1), root.at("folds/count").count_or(1)};
  if (const Member rank = root.at("rank"); rank.present()) {
    const std::vector<std::string>& names = trials::rank_names();
    if (std::find(names.begin(), names.end(), rank.text()) == names.end()) rank.fail("one of " + join(names));
    settings.repetitions.rank = trials::rank_from(rank.text());
  }
  return settings;
}

Error damaged_record(const std::string& study, std::string_view pointer, const nlohmann::json* found,
                     std::string_view wanted) {
  const std::string shown = found == nullptr
                                ? "nothing"
                                : excerpt(found->dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace));
  return {ErrorKind::kStorage,
          fmt::format("study '{}': its record: {}: found {}, wanted {}", printable(study), pointer, shown, wanted)};
}

}  // namespace hfta::engine
