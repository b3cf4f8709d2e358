#pragma once
/// A config and its study in a store: begin it, compare it with the config, resume it.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/trainer.hpp"
#include "search/history.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// The file and overrides that a config was read from; kept in the store, so that a study can be resumed from the store
/// alone.
struct ConfigOrigin {
  std::filesystem::path file;  ///< Absolute: relative paths in the config start from its folder.
  std::vector<Override>
      overrides;  ///< --set and similar options, except those that only say where and how wide to run.
};

/// Files as they were read.
struct StudyFiles {
  std::vector<ModelFacts> models;
  std::vector<DataFacts> data;
};

/// The record that a new study of this config gets. `files`: those it trains and trains on, whose content it is held
/// to. `prior`: trials of an earlier study that its draws see.
[[nodiscard]] storage::StudyRecord new_record(const StudyConfig& config, const ConfigOrigin& origin,
                                              const StudyFiles& files = {}, const search::History& prior = {});

/// The origin of a stored study's config. Throws Error{kConfig} if the study was not made by us,
/// Error{kStorage} if its record is damaged.
[[nodiscard]] ConfigOrigin origin_of(const storage::StudyRecord& stored);

/// Fingerprints of the model files that a stored study is held to, by ModelFacts::file. Throws as origin_of.
[[nodiscard]] std::map<std::string, std::string> model_fingerprints(const storage::StudyRecord& stored);

/// Files, models and data, that were written, replaced or removed since the study was last found to be of what they
/// hold; `folder` is the config's. What they hold now may be the same. Empty for a study that an older hfta-tune left.
/// Throws as origin_of.
[[nodiscard]] std::vector<std::filesystem::path> changed_files(const storage::StudyRecord& stored,
                                                               const std::filesystem::path& folder);

/// The method of a stored study with `method: auto`. One that was begun before there was `auto` has the method that it
/// was begun with, and no reason. Throws as origin_of.
[[nodiscard]] AutoChoice choice_of(const storage::StudyRecord& stored);

/// The record that `stored` becomes when the study is resumed with `config`: raised run_cap, array, log and comments
/// may differ.
/// Throws Error{kConfig} listing every other difference, saying that Optuna made the study, or naming one of `files`
/// (those read so far) whose content has changed.
[[nodiscard]] storage::StudyRecord continued(const storage::StudyRecord& stored, const StudyConfig& config,
                                             const ConfigOrigin& origin, const StudyFiles& files = {});

/// The trials of an earlier study that draws of this one see, as they were found when it was begun; empty if there are
/// none, or the study was not made by us. Throws Error{kStorage} if its record is damaged.
[[nodiscard]] search::History prior_of(const storage::StudyRecord& stored);

/// How a stored study repeats its configurations; of one that was not made by us, not at all. Throws Error{kStorage} if
/// its record is damaged.
[[nodiscard]] trials::Repetitions repetitions_of(const storage::StudyRecord& stored);

/// Whether nothing is left to do: every trial drawn and done, or the study at its budget or target; and the best one
/// tested where there are test data.
[[nodiscard]] bool is_finished(storage::Store& store, const StudyConfig& config, const storage::StudyRecord& record);

/// The best COMPLETE trial of `trials`, which are the store's; with repetitions, the best repetition of the best
/// configuration; of several objectives the Pareto front, by number. Empty if no trial is COMPLETE.
[[nodiscard]] std::vector<const trials::Trial*> best_trials(const StudyConfig& config, storage::Store& store,
                                                            const std::vector<trials::Trial>& trials);

/// `<study>-2`, or the next higher number whose name is not taken.
[[nodiscard]] std::string fresh_name(storage::Store& store, const std::string& study);

/// Makes the trainer check configurations at the edges of the space: every combination of the shape-changing
/// parameters' extreme values (up to 256), each with all others at one end and at the other, and every other
/// parameter's extremes one by one. Throws what Trainer::check throws.
void check_extremes(const StudyConfig& config, Trainer& trainer);

}  // namespace hfta::engine
