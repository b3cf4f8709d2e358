#pragma once
/// The frozen part of each task's model, and the graph behind it that arrays train.

#include <c10/core/Device.h>

#include <map>
#include <string>

#include "engine/fused/prepared_task.hpp"
#include "fusion/frozen_prefix.hpp"

namespace hfta::engine {

/// Splits each model once. Results last as long as this, but for a task's own graph. Used by one thread at a time.
class FrozenLayers {
 public:
  /// `device`: where arrays train.
  explicit FrozenLayers(const c10::Device& device) : device_(device) {}

  /// The part of the task's model that is frozen and alike for all trials. Throws as fusion::frozen_prefix_of.
  [[nodiscard]] const fusion::FrozenPrefix& prefix(const PreparedTask& task);
  /// The graph that its arrays train: the model's, which is the task's own, or the rest behind the frozen prefix.
  [[nodiscard]] const fusion::Graph& trained_graph(const PreparedTask& task);

 private:
  c10::Device device_;
  std::map<std::string, fusion::FrozenPrefix> prefixes_;  ///< By the model's signature and weights.
};

}  // namespace hfta::engine
