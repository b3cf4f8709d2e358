#pragma once
/// Memory of an array: every weight, buffer and optimizer state that slots own, one tensor [P, ...] each; what they
/// share, once.

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

/// Weights that an optimizer trains.
struct Trained {
  OptimizerKind optimizer;
  std::vector<bool> weights;  ///< By Graph::weights.
};

/// Row b of every tensor is slot b's. P is the number of slots with padding.
class SlotStore {
 public:
  /// `owned`: by Graph::weights. `trained`: by phase. `accumulates`: keeps sums of the first phase's gradients.
  /// `bounds`: how many numbers slots keep of how far values that are compressed may be off. `held`, by weight: whether
  /// it is here, or in another stage of a pipeline; empty: all are.
  SlotStore(const Graph& graph, std::vector<bool> owned, std::vector<Trained> trained, bool accumulates, int slots,
            const at::Device& device, std::size_t bounds = 0, std::vector<bool> held = {});

  [[nodiscard]] int slots() const { return slots_; }
  [[nodiscard]] bool owned(std::size_t i) const { return owned_[i]; }
  /// [P, shape...] of weight i (Graph::weights' order), or [shape...] if slots share it; [0] if nothing here reads
  /// it (the frozen part of a model that was split, other stages' weights).
  [[nodiscard]] const at::Tensor& weight(std::size_t i) const { return weights_[i]; }
  /// [P, shape...] of state s (OptimizerInfo::states' order) of weight i for a phase's optimizer; undefined if that
  /// does not train it.
  [[nodiscard]] at::Tensor state(std::size_t phase, std::size_t i, std::size_t s) const;

  /// [P, shape...]: the sum of weight i's gradients since the slot's last step, each by its batch's weight. Undefined
  /// if it is not trained, and where they are not accumulated.
  [[nodiscard]] at::Tensor gradient(std::size_t i) const;
  /// [P] float64: the sum of those batches' weights; undefined where they are not.
  [[nodiscard]] const at::Tensor& gradient_weight() const { return gradient_weight_; }

  /// [P, bounds] float64: fusion/codec/slot_bounds.hpp; undefined where there are none.
  [[nodiscard]] const at::Tensor& bounds() const { return bounds_; }

  /// First weights in row b, drawn on the host from (study seed, trial seed, weight) or as stored; state zero.
  /// `hypers`: Graph::hypers of the slot, which padded weights are cut by.
  void initialise(int slot, std::uint64_t study_seed, std::uint64_t trial_seed, std::span<const double> hypers);
  /// Row b as safetensors, with `counters` as metadata: what is held. `between_steps`: sums of gradients are zero, and
  /// left out.
  [[nodiscard]] std::vector<std::byte> save(int slot, const std::map<std::string, std::string>& counters,
                                            bool between_steps) const;
  /// The bytes that save() would give if all weights were held, from the bytes that it gave at each of the stages.
  [[nodiscard]] std::vector<std::byte> joined(std::span<const std::vector<std::byte>> parts) const;
  /// Row b from save()'s bytes, of all weights; returns the counters. Sums of gradients that were left out are zero.
  /// Throws Error{kStorage}, row b untouched, if they do not fit.
  std::map<std::string, std::string> load(int slot, std::span<const std::byte> bytes);
  /// The first min(slots, P) rows kept.
  void resize(int slots);
  [[nodiscard]] std::int64_t bytes_per_slot() const;
  /// Bytes of what slots share.
  [[nodiscard]] std::int64_t shared_bytes() const;

 private:
  struct Named {
    std::string name;  ///< Name in a saved slot.
    DType dtype;
    Shape shape;        ///< Shape of one slot's part.
    at::Tensor tensor;  ///< Undefined where it is not held.
  };
  [[nodiscard]] bool held(std::size_t i) const { return held_.empty() || held_[i]; }
  /// How many states a phase's optimizer keeps of weight i.
  [[nodiscard]] std::size_t states_of(std::size_t phase, std::size_t i) const;
  /// Every tensor that slots own, with sums of gradients or without.
  [[nodiscard]] std::vector<Named> named(bool gradients) const;
  /// Row b's sums of gradients become zero.
  void forget_gradients(int slot);

  const Graph& graph_;
  std::vector<bool> owned_, held_;
  std::vector<Trained> trained_;
  int slots_;
  at::Device device_;
  std::vector<at::Tensor> weights_;
  std::vector<std::vector<std::vector<at::Tensor>>> states_;  ///< [phase][weight][state]
  std::vector<at::Tensor> gradients_;                         ///< [weight]; empty where they are not accumulated
  at::Tensor gradient_weight_, bounds_;
};

}  // namespace hfta::fusion
