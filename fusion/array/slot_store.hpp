#pragma once
/// Memory of an array: every weight, buffer and optimizer state of every slot, one tensor [P, ...] each.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Row b of every tensor is slot b's. P is the number of slots with padding.
class SlotStore {
 public:
  SlotStore(const Graph& graph, OptimizerKind optimizer, int slots, const at::Device& device);

  [[nodiscard]] int slots() const { return slots_; }
  /// [P, shape...] of weight i (Graph::weights' order).
  [[nodiscard]] const at::Tensor& weight(std::size_t i) const { return weights_[i]; }
  /// [P, shape...] of state s (state_names' order) of weight i; undefined if it is not trained.
  [[nodiscard]] at::Tensor state(std::size_t i, std::size_t s) const;

  /// Fresh weights in row b, drawn on the host from (study seed, trial seed, weight); state zero.
  void initialise(int slot, std::uint64_t study_seed, std::uint64_t trial_seed);
  /// Row b as safetensors, with `counters` as metadata.
  [[nodiscard]] std::vector<std::byte> save(int slot, const std::map<std::string, std::string>& counters) const;
  /// Row b from save()'s bytes; returns the counters. Throws Error{kStorage}, row b untouched, if they do not fit.
  std::map<std::string, std::string> load(int slot, std::span<const std::byte> bytes);
  /// The first min(slots, P) rows kept.
  void resize(int slots);
  [[nodiscard]] std::int64_t bytes_per_slot() const;

 private:
  /// Every tensor by its name in a saved slot.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> named() const;

  const Graph& graph_;
  OptimizerKind optimizer_;
  int slots_;
  at::Device device_;
  std::vector<at::Tensor> weights_;
  std::vector<std::vector<at::Tensor>> states_;  ///< [weight][state]
};

/// ATen's name for it.
[[nodiscard]] at::ScalarType scalar_type(DType dtype);

}  // namespace hfta::fusion
