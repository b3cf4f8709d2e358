#pragma once
/// A study's config: read, checked and typed. The whole meaning of the YAML is defined here and in config/*.cpp.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/division/division.hpp"
#include "fusion/dataset.hpp"
#include "fusion/exported.hpp"
#include "fusion/layers.hpp"
#include "fusion/memory_policy.hpp"
#include "fusion/recipe.hpp"
#include "search/constraints.hpp"
#include "search/methods.hpp"
#include "search/stopping.hpp"
#include "trials/repetition.hpp"
#include "trials/space.hpp"

namespace hfta::engine {

/// `model: {file: ...}`: an exported model and the options of its import.
struct ModelFile {
  std::string name;  ///< Path as the config has it: relative to its folder, or absolute.
  std::filesystem::path file;
  fusion::ImportOptions import;
  std::string evaluation_name;  ///< Path of evaluation's file, like `name`; "": it has no file of its own.
  std::filesystem::path evaluation_file;
  bool evaluation_by_training = false;  ///< model.evaluation: training_graph
};

/// One trial's task with every ${name} replaced: what is trained, on what, and how.
struct TaskSpec {
  std::vector<fusion::LayerSpec> layers;  ///< Empty where model_file is set.
  std::optional<ModelFile> model_file;
  fusion::DataSource data;
  fusion::OrderOptions order;
  bool drop_last = false;
  fusion::Recipe recipe;
  fusion::SlotHyper hyper;            ///< `graph` is filled when the graph is built.
  std::string schedule_where;         ///< train.schedule's place, for messages: "s.yaml:12".
  std::optional<std::uint64_t> seed;  ///< train.seed; unset: the trial's number.
};

/// The metric that counts a trial's trained parameters; recorded where it is an objective.
inline constexpr const char* kParameterCount = "parameters";

/// A run_cap that no study reaches. Studies that only their budget ends have it.
inline constexpr int kEndless = 1'000'000'000;

/// Limits on what a study uses over all of its runs. A member that is unset sets no limit.
struct Budget {
  std::optional<double> seconds;
  std::optional<std::int64_t> epochs;  ///< Trial-epochs.
};

/// An earlier study whose trials a method that learns begins with.
struct WarmStart {
  std::string study;
  std::string storage;  ///< URL of its store, like StudyConfig::storage.
};

/// One `--set key.path=value`, or a flag that overrides a key. Paths in values are relative to the config's folder.
struct Override {
  std::string key_path, value;
  std::string flag = {};  ///< "--width"; "": it was given by --set.
};

/// The method that `method: auto` stands for in a study.
struct AutoChoice {
  std::vector<Override> keys;  ///< The keys that a config would have: method, and early_stopping if it is chosen, too.
  std::string reason;          ///< "10 configurations are too few to learn from"; "": not known any more.
  /// "auto chose method: sobol, because ..."
  [[nodiscard]] std::string text() const;
};

/// Memory as a budget: `memory` in the config.
struct MemoryBudget {
  std::optional<std::int64_t> limit;  ///< Bytes of each device that arrays may hold; unset: auto.
  fusion::MemoryPolicy policy = fusion::MemoryPolicy::kAuto;
  std::optional<fusion::Compression> compression = {};  ///< Set for policy compress; every trial's recipe has the same.
  bool given = false;                                   ///< The config has the section: what it leads to is shown.
};

/// A checked config. Copyable.
struct StudyConfig {
  std::string study;
  std::filesystem::path file, folder;
  std::string storage;  ///< URL of the study store, as storage::open_store() takes it; of an SQLite file, its path.
  std::uint64_t seed = 0;
  std::string method = "random";  ///< A name of search::methods().
  search::MethodOptions method_options;
  std::optional<AutoChoice> choice;              ///< Set if the config has `method: auto` or no method.
  std::vector<search::Stopping> early_stopping;  ///< Rules that hold together; max_epochs is the task's.
  std::optional<int> run_cap;                    ///< Most configurations to try.
  trials::Repetitions repetitions;
  Budget budget;
  std::optional<double> target;  ///< Value of the metric that ends the study; only with one objective.
  trials::Objectives objectives = {{}};
  bool select_best = false;                     ///< metric: {select: best}; only with one objective.
  trials::Space space;                          ///< A trial's parameters: those searched, then `repetitions`' axes.
  std::vector<search::Constraint> constraints;  ///< Every drawn configuration meets them.
  std::map<std::string, trials::ParamValue> otherwise;  ///< Values of ${name} where that parameter does not apply.
  std::set<std::string> shape_changing;                 ///< Parameters that split trials into partitions.
  std::set<std::string> padded;  ///< Parameters that say how much of its tensors a trial uses (an adapter's rank).
  std::vector<trials::Params> points;  ///< Configurations that are tried first.
  std::optional<WarmStart> warm_start;
  int keep = 10;
  std::optional<int> width;                     ///< array.width; unset: auto
  std::vector<std::string> devices = {"auto"};  ///< array.device
  std::optional<int> threads;                   ///< array.threads; unset: auto
  std::optional<std::int64_t> cache;            ///< array.cache, bytes, 0: off; unset: auto
  bool refill = true;                           ///< array.refill
  bool lend = true;                             ///< array.lend
  Divide divide = Divide::kAuto;                ///< array.divide
  MemoryBudget memory;
  std::vector<std::string> warnings;
  std::string text;                 ///< The config's text as read, for the store's snapshot.
  std::vector<Override> overrides;  ///< The overrides that the config was read with.
  std::string normalized;           ///< JSON of everything that affects results; an edited config is compared with it.

  /// The task of a trial. Throws Error{kConfig} with the place if the parameters do not fit.
  std::function<TaskSpec(const trials::Params&)> task;
  /// Whether what is drawn, stopped or promoted follows from what other trials have shown, or a trial's value ends the
  /// study. Trials that begin later then know more.
  [[nodiscard]] bool follows_results() const;
  /// "hidden=64, batch=32": the shape-changing parameters of a trial.
  [[nodiscard]] std::string partition(const trials::Params& params) const;
  /// The members of `params` that split trials into partitions.
  [[nodiscard]] trials::Params splitting(const trials::Params& params) const;
  /// Whether the study has several objectives, so that its trials have no single order.
  [[nodiscard]] bool has_several_objectives() const { return objectives.size() > 1; }
  /// `space` without the repetitions' axes: what a sampler draws from.
  [[nodiscard]] trials::Space searched() const;
};

/// "cpu:3" -> 3, the threads of that device; nullopt for any other word.
[[nodiscard]] std::optional<int> cpu_threads(const std::string& device);

/// The devices that a word of array.device joins to one, which train each array together: "cpu:1+cpu:1" -> "cpu:1",
/// "cpu:1". Any other word is the only part of its own.
[[nodiscard]] std::vector<std::string> parts_of(const std::string& device);

/// The CPU threads of each of a study's devices. "cpu:3" has 3, and so has each part of "cpu:3+cpu:3"; the `cpu`
/// without a number divide what these leave of `all`, and have at least one each; a GPU may use them all.
[[nodiscard]] std::vector<int> threads_of(const std::vector<std::string>& devices, int all);

/// Reads and checks a config: syntax, keys, types, ranges, ${} references, layer shapes for every combination of
/// shape-changing values (up to 256). Touches no other file and no device. Throws Error{kConfig}, one line:
/// `file:line: key: found X, wanted Y`.
/// `begun`: for a study that is resumed, what `method: auto` stood for when it was begun; it is not chosen again.
[[nodiscard]] StudyConfig load_config(const std::filesystem::path& file, const std::vector<Override>& overrides,
                                      const std::optional<AutoChoice>& begun = std::nullopt);

/// Reads and checks a config's text that a store holds. `file` is the file that the text was read from: messages and
/// the study's default name use its name, and relative paths start from its folder. The file need not exist any more.
[[nodiscard]] StudyConfig parse_config(const std::string& text, const std::filesystem::path& file,
                                       const std::vector<Override>& overrides,
                                       const std::optional<AutoChoice>& begun = std::nullopt);

/// The differences between two configs' `normalized`, by key path: "train.optimizer.name: found adam, the study has
/// sgd".
[[nodiscard]] std::vector<std::string> config_differences(const std::string& stored_json, const std::string& now_json);

}  // namespace hfta::engine
