#pragma once
/// The part of a config that each trial reads with its own values: model, data, train. Internal to engine/config.

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.hpp"
#include "engine/config/node.hpp"
#include "engine/config/reader.hpp"

namespace hfta::engine::configuration {

/// How the training data are cut into folds.
struct FoldKeys {
  bool stratified = false;
  std::string groups;  ///< "": none
};

/// The part of a config that a trial's task is read from. Shared by all trials of a study, never changed.
struct TaskText {
  std::string file;
  std::filesystem::path folder;                         ///< Paths of models and data are relative to it.
  Node tree;                                            ///< A map of model, data and train, ${name} unreplaced.
  trials::Space space;                                  ///< The parameters searched.
  std::map<std::string, trials::ParamValue> otherwise;  ///< StudyConfig::otherwise
  trials::Repetitions repetitions;
  FoldKeys folds;
  std::optional<fusion::Compression> compression = {};  ///< Set by memory.policy: compress.
  int default_epochs = 0;                               ///< Default of train.epochs; 0: the key is required.
  std::vector<std::pair<std::string, Node>> metrics;    ///< The study's metrics to check, by their keys' paths.
};

/// Reads and checks a trial's task, and records it in canonical form. Throws Error{kConfig} with the place.
[[nodiscard]] TaskSpec read_task(const TaskText& text, const trials::Params& params, nlohmann::json& record);

/// Whether larger values of a recorded metric are better; nullopt: unknown (a formula).
[[nodiscard]] std::optional<bool> larger_is_better(const TaskSpec& task, std::string_view name);

/// The words that a value of the config may become in this study: itself, or what its parameter may be.
[[nodiscard]] std::vector<std::string> possible_words(const Node* node, const trials::Space& space);

// The sections.
void read_model(Reader& model, const TaskText& text, nlohmann::json& record, TaskSpec& task);
[[nodiscard]] ModelFile read_model_file(Reader& model, const TaskText& text);
/// model.adapters
[[nodiscard]] fusion::Lora read_adapters(Reader& adapters, const std::string& file, const trials::Space& space);
/// Throws if an optimizer changes the zeros that adapters are padded with. REQUIRES that optimizers were read.
void check_padding(const Reader& train, const TaskSpec& task);
/// `labelled`: whether the loss compares outputs with targets.
void read_data(Reader& data, const std::filesystem::path& folder, const trials::Space& space, bool labelled,
               TaskSpec& task);
/// REQUIRES that the model was read.
void read_train(Reader& train, const TaskText& text, TaskSpec& task);
/// train.loss
void read_loss(Reader& train, const trials::Space& space, TaskSpec& task);
/// Whether the loss is one of the model: train.loss names an output of it, or train.phases do.
[[nodiscard]] bool has_loss_of_model(const Reader& train);
/// Reads train.metrics. REQUIRES that the loss was read.
void read_metrics(Reader& train, TaskSpec& task);

/// An optimizer with its groups of parameters.
struct OptimizerRead {
  fusion::OptimizerKind kind;
  fusion::OptimizerHyper hyper;
  std::vector<fusion::ParameterGroup> groups = {};
  std::vector<fusion::OptimizerHyper> group_hypers = {};
};
/// train.optimizer, or a phase's.
[[nodiscard]] OptimizerRead read_optimizer(Reader& optimizer, const trials::Space& space);
/// The key `params` of a group or a phase: its parameters, and where that stands.
[[nodiscard]] fusion::ParameterGroup read_params(Reader& section);
/// train.phases, in place of the loss and the optimizer.
void read_phases(Reader& train, const trials::Space& space, TaskSpec& task);
void read_schedule(Reader& schedule, const trials::Space& space, TaskSpec& task);

/// "digits.yaml:24", or "--set data.train".
[[nodiscard]] std::string place_of(const std::string& file, const Node& node);

}  // namespace hfta::engine::configuration
