#pragma once
/// Studies of kHyperband that were run, or begun and stopped.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace hfta::testing {

/// The words that run digits.yaml with another store.
[[nodiscard]] std::vector<std::string> run_in(const std::string& store);

/// What a study's report says, less what may differ between equal studies.
[[nodiscard]] nlohmann::json results(const Workplace& place, const std::string& store);

/// The results of the study when nothing disturbs it.
[[nodiscard]] const nlohmann::json& whole_results();

/// Writes digits.yaml and runs it for a few rounds; the states of all that is unfinished are on disk then.
void begin_study(const Workplace& place, const std::string& store = "digits.db");

/// The states of unfinished trials.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints(const Workplace& place);

}  // namespace hfta::testing
