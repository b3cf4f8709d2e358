#pragma once
/// A trial's weights as a file that the model's own language reads.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

enum class ExportFormat {
  kWeights,  ///< The model's state dict; where the config put adapters in, with these merged.
  kMerged,   ///< As kWeights; for a model that PEFT wrapped, the state dict of the model without PEFT.
  kPeft,     ///< The adapters alone, as a folder that PeftModel.from_pretrained takes.
};

[[nodiscard]] std::optional<ExportFormat> export_format(const std::string& word);  ///< "weights", "merged", "peft"

struct ExportedFile {
  std::string name;  ///< File name in a folder; "": it is the only file.
  std::vector<std::byte> bytes;
};

/// Weights and buffers of trial `number` (nullopt: the best COMPLETE one; with repetitions, the best repetition of the
/// best configuration; of several objectives the only one on the Pareto front) after the epoch that its value was
/// measured at, or, of a trial that is RUNNING, after the latest one that its state is kept of, as safetensors: names
/// and shapes of the model's state dict, nothing of the optimizer. What a trial trains has the dtype it was trained in;
/// of a model file, everything else the state dict has (frozen and unused parameters, further names of tied ones) is
/// taken from the file, floats in that dtype, too. The metadata say what the trial's bound numbers were, and the epoch.
/// Throws Error{kConfig}: no such trial, several that `number` has to choose among, none that is COMPLETE, one that is
/// not kept (those that are named), a model file that is absent or another than the study trained, a format that the
/// model does not have; Error{kStorage}: a state that is damaged.
[[nodiscard]] std::vector<ExportedFile> export_trial(const StudyConfig& config, storage::Store& store,
                                                     storage::StudyStates& states, std::optional<int> number,
                                                     ExportFormat format);

}  // namespace hfta::engine
