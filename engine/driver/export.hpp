#pragma once
/// A finished trial's weights as a file that the model's own language reads.

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/config.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Weights and buffers of trial `number` (nullopt: the best COMPLETE one; with repetitions, the best repetition of the
/// best configuration) after the epoch that its value was measured
/// at, as safetensors: names and shapes of the model's state dict, nothing of the optimizer. What a trial trains has
/// the dtype it was trained in; of a model file, everything else the state dict has (frozen and unused parameters,
/// further names of tied ones) is taken from the file, floats in that dtype, too. `finished`: the study's kept states.
/// Throws Error{kConfig}: no such trial, none that is COMPLETE, one that is not kept (those that are named), a model
/// file that is absent or another than the study trained; Error{kStorage}: a state that is damaged.
[[nodiscard]] std::vector<std::byte> export_weights(const StudyConfig& config, storage::Store& store,
                                                    storage::Checkpoints& finished, std::optional<int> number);

}  // namespace hfta::engine
