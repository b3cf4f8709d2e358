#pragma once
/// How a training step is compiled.

#include <cstdint>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/library.hpp"
#include "fusion/cpu/recompute.hpp"

namespace hfta::fusion::cpu {

/// TrainingOptions::apply_bytes of plans that train. With the weights and two states of the optimizer these are 1 MiB,
/// which a second cache holds.
inline constexpr std::int64_t kApplyBytes = std::int64_t{256} * 1024;

struct TrainingOptions {
  /// Runs calls of ops that have no compiler, or not for such arguments, in parts of calls that follow one another;
  /// null: there is none.
  const Library* library = nullptr;
  int threads = 1;          ///< Most threads of a team that may run the plan.
  Recompute recompute = 0;  ///< Values that are computed again for the backward, to the same bits.
  /// Bounds of the weights whose layers' inputs may be encoded (bounded_layers(), of float32); null: none may.
  const BoundLayout* bounds = nullptr;
  /// Gradients are applied to their weights (Run::apply) while the backward goes on, at least so many bytes at a time
  /// as long as there are as many; 0: all are there when the run ends.
  std::int64_t apply_bytes = 0;
};

}  // namespace hfta::fusion::cpu
