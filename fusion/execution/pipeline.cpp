#include "fusion/execution/pipeline.hpp"

namespace hfta::fusion {

std::string why_no_pipeline(const Recipe& recipe) {
  if (!recipe.phases.empty()) return "train.phases makes several steps of a batch";
  if (recipe.compression) return "memory.policy: compress sets bounds by the gradients of all layers";
  return "";
}

}  // namespace hfta::fusion
