#include "fusion/runnable.hpp"

#include "fusion/array/program.hpp"
#include "fusion/array/schema.hpp"

namespace hfta::fusion {

void check_runnable(const Graph& graph, const c10::Device& device) {
  const Graph complete = with_complete_arguments(graph);
  Reading training = training_reading(complete);
  const std::vector<bool> owned = owned_weights(training);
  static_cast<void>(Program(with_shared_statistics(std::move(training), owned), owned, {}, device));
  static_cast<void>(Program(evaluation_reading(complete), owned, {}, device));
}

}  // namespace hfta::fusion
