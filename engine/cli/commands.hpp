#pragma once
/// The commands. Each takes the words after its name and returns the exit code; errors are thrown.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/faults.hpp"
#include "engine/cli/arguments.hpp"
#include "engine/config.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/module.hpp"
#include "engine/topology/topology.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

using Words = std::vector<std::string>;

/// Exit code where a store is damaged, as where it cannot be read at all.
inline constexpr int kDamagedStore = 3;

/// hfta-tune CONFIG.yaml ...: `words` includes the config.
int run_command(const Words& words);
/// hfta-tune resume STUDY --storage URL
int resume_command(const Words& words);
int report_command(const Words& words);
int plan_command(const Words& words);
int studies_command(const Words& words);
int simulate_command(const Words& words);
int topo_command(const Words& words);
int export_command(const Words& words);
int backup_command(const Words& words);
int doctor_command(const Words& words);
/// The command that hfta-tune itself starts: one of the processes of a device that is made of several.
int rank_command(const Words& words);

/// The name of every command that is for users, for messages.
[[nodiscard]] const std::vector<std::string>& command_names();

// ---- Shared by commands ----

/// --trials, --width, --device and --set, which override keys of the config.
void add_override_options(boost::program_options::options_description& options);
[[nodiscard]] std::vector<Override> overrides_from(const Arguments& arguments);

/// --storage, the store that it names, opened for reading, and the study that is meant: STUDY, or the only one.
void add_storage_option(boost::program_options::options_description& options);
[[nodiscard]] std::unique_ptr<storage::Store> open_store(const Arguments& arguments);
[[nodiscard]] std::string study_or_only(const Arguments& arguments, storage::Store& store);

/// Loads the config of a file. If its study is in its store already, `method: auto` stands for what it was begun with.
[[nodiscard]] StudyConfig load_begun(const std::filesystem::path& file, const std::vector<Override>& overrides);

/// The config that a study was stored with, and where it came from, `overrides` added to its own. `url`: the store's.
/// Throws Error{kConfig} naming the nearest study, or if it was not made by us.
struct StoredConfig {
  StudyConfig config;
  ConfigOrigin origin;
};
[[nodiscard]] StoredConfig stored_config(storage::Store& store, const std::string& study, const std::string& url,
                                         const std::vector<Override>& overrides);

/// --topology and --machine, and the machine that they name; without either, this one.
void add_topology_options(boost::program_options::options_description& options);
[[nodiscard]] Topology topology_from(const Arguments& arguments);

/// `simulate --allocation`: queues of arrays on a machine's accelerators, under each policy.
void add_allocation_options(boost::program_options::options_description& options);
int simulate_allocation(const Arguments& arguments);

/// `plan --cluster`: which device does what of a training step.
void add_cluster_options(boost::program_options::options_description& options);
int plan_on_cluster(const Arguments& arguments);
/// `simulate --planner`: plans of HeteroG's nets beside what its paper measured.
void add_planner_options(boost::program_options::options_description& options);
int simulate_planner(const Arguments& arguments);

/// Faults that tests ask for: HFTA_FAULTS="state-saved=kill" and its like, see base/faults.hpp.
[[nodiscard]] Faults faults_from_environment();

/// Writes a config's warnings to standard error.
void tell_warnings(const StudyConfig& config);
/// Writes the notes on model files to standard error.
void tell_notes(const std::vector<ModelFacts>& models);

/// One trainer per device that the config asks for; data are loaded and the extremes of the space checked. Nothing is
/// created. `cache`: where choices are remembered, "" nowhere.
struct Fleet {
  std::vector<std::string> devices;  ///< Their labels, each another: "cuda:0", "cpu:1".
  std::vector<std::unique_ptr<Trainer>> trainers;
};
[[nodiscard]] Fleet make_fleet(const StudyConfig& config, const std::filesystem::path& cache);

}  // namespace hfta::engine
