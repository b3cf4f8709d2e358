#include "engine/fused/choice_keys.hpp"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/fused/choice_cache.hpp"
#include "fusion/simd/multiversion.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {
namespace {

// "float32"; "float32 in bfloat16". Stores that were written when there was only one precision do not name it.
std::string type_of(const fusion::Recipe& recipe) {
  const std::string dtype = name_of(recipe.dtype);
  return recipe.precision == fusion::Precision::kFloat32 ? dtype : dtype + " in " + name_of(recipe.precision);
}

// The loss in a ChoiceKey. It has options only if they are not the defaults: studies that were begun before there were
// any recall their choices.
std::string loss_text(const fusion::Recipe& recipe) {
  std::string text = name_of(recipe.loss);
  const fusion::LossOptions& options = recipe.loss_options;
  for (const fusion::Phase& phase : recipe.phases) {
    text += fmt::format(" {} of {} by {}", phase.loss, join(phase.params), name_of(phase.optimizer));
  }
  if (options == fusion::LossOptions{}) return text;
  return fmt::format("{} ignore {} classes {} at {} positive {} log {} {} weighted {}", text, options.ignore_index,
                     options.class_weight.size(), options.class_dim, options.pos_weight.size(), options.log_input,
                     options.log_target, options.weighted);
}

// ChoiceKey::memory.
std::string memory_text(const TrainerOptions& options) {
  const MemoryBudget& memory = options.config.memory;
  if (memory.limit) return fmt::format("{} within {} bytes", name_of(memory.policy), *memory.limit / options.sharers);
  return memory.policy == fusion::MemoryPolicy::kAuto ? "" : name_of(memory.policy);
}

}  // namespace

// The key has a hash of the graph's signature, which would be long.
std::string graph_key(const fusion::Graph& graph, const fusion::Recipe& recipe) {
  Fnv1a hash;
  hash.add(graph.signature());
  return fmt::format("{}|{}|{}|batch {}|{:016x}", type_of(recipe), name_of(recipe.optimizer), loss_text(recipe),
                     recipe.batch_size, hash.value());
}

ChoiceKey choice_key(const TrainerSetup& setup, std::string graph, int width) {
  return {fmt::format("{} {}, {}", setup.options().device, cpu_model(), name_of(fusion::simd::instruction_set())),
          TORCH_VERSION,
          std::move(graph),
          width,
          setup.threads(),
          memory_text(setup.options())};
}

bool are_runnable(const TrainerSetup& setup, const KeptChoices& kept) {
  const std::vector<fusion::Measured>& all = kept.choices.candidates;
  return std::all_of(all.begin(), all.end(), [&](const fusion::Measured& candidate) {
    return fusion::is_runnable(candidate.lowering, setup.device(), setup.graphs().get());
  });
}

}  // namespace hfta::engine
