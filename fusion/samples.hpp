#pragma once
/// Samples for training steps and evaluation: parts of a set that lies on a device.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hfta::fusion {

/// Samples of a set, with what all slots compute alike of them.
struct Samples {
  std::vector<at::Tensor> inputs;  ///< Graph::inputs' order, [M, ...].
  at::Tensor target;               ///< [M, ...]
  at::Tensor order = {};           ///< The order in which samples are taken, int64; undefined: as they stand.
  std::int64_t begin = 0;          ///< Of that order, these: [begin, end).
  std::int64_t end = -1;           ///< -1: to its end.
  /// Filled in by Array::prepare; a step that finds none computes it for itself.
  std::shared_ptr<const std::vector<c10::IValue>> shared = nullptr;

  /// N.
  [[nodiscard]] std::int64_t size() const;
  /// Those samples of `all`, which is target or one of inputs: a view where they stand in order.
  [[nodiscard]] at::Tensor of(const at::Tensor& all) const;
};

/// Samples for one step of a chunk.
struct Batch {
  std::vector<Samples> parts;
  std::vector<int> part_of = {};  ///< Which of `parts` each slot of the chunk takes; empty: all take the first.

  [[nodiscard]] std::size_t part_of_slot(int slot_of_chunk) const {
    return part_of.empty() ? 0 : static_cast<std::size_t>(part_of[static_cast<std::size_t>(slot_of_chunk)]);
  }
};

}  // namespace hfta::fusion
