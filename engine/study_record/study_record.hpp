#pragma once
/// What a study's record keeps of its config beside the text: StudyRecord::config_json, written and read here alone.
/// The driver begins and resumes studies by it; reports read what they show from it.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "storage/records.hpp"
#include "trials/repetition.hpp"

namespace hfta::engine {

/// A config as the store keeps it.
struct KeptConfig {
  using Keys = std::vector<std::pair<std::string, std::string>>;  ///< Paths of keys, and the YAML that they were given.
  using Texts = std::map<std::string, std::string>;

  /// What `method: auto` chose.
  struct Choice {
    Keys keys;
    std::string reason;
  };

  nlohmann::json config;  ///< An object: the config, normalised; the keys that decide results.
  std::string file;       ///< The file that the config was read from.
  Keys set;               ///< Overrides that it was read with.
  Texts models, data;     ///< Fingerprints of the files that the study is held to.
  Texts stamps;           ///< What tells whether these files were written since, by path from the config's folder on.
  nlohmann::json prior = nlohmann::json::array();  ///< Trials of an earlier study that its draws see; mostly empty.
  std::optional<Choice> choice = std::nullopt;
};

/// StudyRecord::config_json of a study with that config. Empty members, and a choice without a reason, are left out.
[[nodiscard]] std::string pack(const KeptConfig& config);

/// What pack() wrote. Nothing for a study that hfta-tune did not make: Optuna's have no config. Throws damaged_record()
/// for a member that has another form than pack() gives it.
[[nodiscard]] std::optional<KeptConfig> unpack(const storage::StudyRecord& stored);

/// Values of a stored config that are of use without the rest of it.
struct KeptSettings {
  std::string method;        ///< "" where the config has none.
  bool select_best = false;  ///< metric.select is "best".
  trials::Repetitions repetitions;
};

/// Reads them; a value that the config does not have is the default. `study`: its name, for messages. Throws
/// damaged_record() for a value that no config can have.
[[nodiscard]] KeptSettings settings_of(const KeptConfig& config, const std::string& study);

/// Error{kStorage} about a study's record: `pointer` is the JSON pointer of the member ("/config/repeat"), `found` its
/// value, of which the beginning is shown, or nullptr if it is absent.
[[nodiscard]] Error damaged_record(const std::string& study, std::string_view pointer, const nlohmann::json* found,
                                   std::string_view wanted);

}  // namespace hfta::engine
