#pragma once
/// `repeat`, `folds` and `rank`: how often each configuration is trained. Internal to engine/config.

#include <string>

#include "engine/config.hpp"
#include "engine/config/reader.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {

/// Reads the keys into `config.repetitions`. `config.space` has the parameters searched. Throws Error{kConfig} if one
/// of them has the name of a repetition's parameter.
[[nodiscard]] FoldKeys read_repetitions(Reader& root, const std::string& file, StudyConfig& config);

/// Throws Error{kConfig} if the method, the rule of early stopping or run_cap does not go with repetitions; these are
/// read already.
void check_repetitions(const Reader& root, const StudyConfig& config);

/// Adds the repetitions' parameters to the space; `fold` splits trials into partitions where folds differ in size.
void add_axes(const FoldKeys& folds, StudyConfig& config);

/// Applies a trial's `repeat` and `fold` to its task. `data`: the section, for messages.
void repeat_task(const TaskText& text, const trials::Params& params, const Reader& data, TaskSpec& task);

}  // namespace hfta::engine::configuration
