#pragma once
/// What an array refuses before anything is computed from it: arguments that nobody could run, and combinations that
/// are not built.

#include <c10/core/Device.h>

#include <cstddef>
#include <span>

#include "fusion/array.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig}: a width below 0, or too large for its slots to be counted.
void check_width(int width);
/// Throws Error{kConfig}: a number of slots or threads below 1, or more of them than a machine can have.
void check_lowering(const Lowering& lowering);
/// Everything that the array's constructor was given, by itself. Throws Error{kConfig} as the two above and as
/// verify(), and for counts below 1 in the recipe; Error{kDevice} for a device that is not there.
void check_arguments(const Graph& model, const Recipe& recipe, const Lowering& lowering, int width,
                     const c10::Device& device);

/// Whether the recipe can be run on this device and by these ranks. `group`: null where the array has no ranks.
/// `parts`: the shares of ranks that divide batches; empty where none do. Throws Error{kConfig}.
void check_recipe(const Graph& model, const Recipe& recipe, const c10::Device& device, const Collectives* group,
                  std::span<const int> parts);

/// Whether a slot's numbers fit the recipe: how many there are of each kind, and counts. The values themselves may be
/// any, NaN too: the slot then diverges, as it would in PyTorch. `model_hypers`, `loss_hypers`: how many numbers the
/// graph takes from SlotHyper::graph and SlotHyper::loss. Throws Error{kInternal}.
void check_slot(const SlotInit& init, const Recipe& recipe, std::size_t model_hypers, std::size_t loss_hypers);

/// Whether the samples are there for each of the graph's inputs, targets among them, and the range and the order are
/// within them. Allocates nothing; indices on a GPU are not read. Throws Error{kConfig}.
void check_samples(const Samples& samples, const Graph& graph);

/// Whether a tensor can take the losses of a step of so many slots: [2, slots] float64, contiguous. Throws
/// Error{kInternal}.
void check_losses(const at::Tensor& losses, std::size_t slots);

}  // namespace hfta::fusion
