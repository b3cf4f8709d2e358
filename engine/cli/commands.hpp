#pragma once
/// The commands. Each takes the words after its name and returns the exit code; errors are thrown.

#include <filesystem>
#include <string>
#include <vector>

#include "engine/cli/arguments.hpp"
#include "engine/config.hpp"
#include "engine/module.hpp"

namespace hfta::engine {

using Words = std::vector<std::string>;

/// hfta-tune CONFIG.yaml ...: `words` includes the config.
int run_command(const Words& words);
/// hfta-tune resume STUDY --storage URL
int resume_command(const Words& words);
int report_command(const Words& words);
int plan_command(const Words& words);
int studies_command(const Words& words);

/// The name of every command, for messages.
[[nodiscard]] const std::vector<std::string>& command_names();

// ---- Shared by commands ----

/// --trials, --width, --device and --set, which override keys of the config.
void add_override_options(boost::program_options::options_description& options);
[[nodiscard]] std::vector<Override> overrides_from(const Arguments& arguments);

/// Warnings of a config go to standard error.
void tell_warnings(const StudyConfig& config);

/// One trainer per device that the config asks for; data are loaded and the extremes of the space checked. Nothing is
/// created. `cache`: where choices are remembered, "" nowhere.
struct Fleet {
  std::vector<std::string> devices;
  std::vector<std::unique_ptr<Trainer>> trainers;
};
[[nodiscard]] Fleet make_fleet(const StudyConfig& config, const std::filesystem::path& cache);

}  // namespace hfta::engine
