// What a study recorded of how it ran: whether it goes on so, and what a line says where results change a little.
#include <fmt/format.h>

#include <utility>

#include "engine/fused/fused_trainer.hpp"

namespace hfta::engine {

bool FusedTrainer::may_go_on(const Division& division) const {
  return ranks() > 1 && division.parts.size() == static_cast<std::size_t>(ranks()) &&
         agrees(division, options_.config.divide);
}

std::string FusedTrainer::recall(const std::string& partition, const std::string& choices_json) {
  std::optional<KeptChoices> kept = recorded_choices(choices_json);
  if (!kept) return "";
  if (const std::string number = beyond_bounds(*kept); !number.empty()) {
    return fmt::format(
        "{}{}{}: the store says that the study ran with {}, which no run chooses: ways to run are measured "
        "anew",
        options_.label, partition.empty() ? "" : ", ", partition, number);
  }
  const auto graph = graphs_.find(partition);  // one that was not met yet is compared when its array is opened
  const ChoiceKey now = key_of(graph == graphs_.end() ? "" : graph->second, kept->key.width);
  const std::string difference = difference_of(kept->key, now);
  const auto line = [&](const std::string& what) {
    return fmt::format("{}{}{}: the study {} before; results from now on agree with it only up to rounding",
                       options_.label, partition.empty() ? "" : ", ", partition, what);
  };
  if (!difference.empty()) return line(fmt::format("ran with {}", difference));
  if (!are_runnable(*kept)) return "";  // no run of ours wrote that: measured anew
  if (const std::string in_stages = difference_in_stages(*kept); !in_stages.empty()) return line(in_stages);
  const std::string in_batches = difference_in_batches(*kept);
  whole_batches_.erase(partition);
  if (!kept->divides_batches()) whole_batches_.insert(partition);
  if (kept->ranks && !may_go_on(kept->ranks->chosen)) kept->ranks.reset();
  kept->choices.how = fusion::ChoiceOrigin::kRecalled;
  recalled_.insert_or_assign(partition, *std::move(kept));
  return in_batches.empty() ? "" : line(in_batches);
}

// Ranks behind the first do as it says, which has told the user.
std::string FusedTrainer::difference_in_batches(const KeptChoices& before) const {
  if (options_.group != nullptr && options_.group->rank() > 0) return "";
  if (before.divides_batches()) {
    const Division& division = before.ranks->chosen;
    return may_go_on(division) ? "" : fmt::format("divided its batches among {} ranks", division.parts.size());
  }
  const Divide divide = options_.config.divide;
  const bool now = ranks() > 1 && (divide == Divide::kBatches || divide == Divide::kEvenBatches);
  return now ? "did not divide its batches" : "";
}

// Kernels compute several calls at once, but not over a cut.
std::string FusedTrainer::difference_in_stages(const KeptChoices& before) const {
  if (before.stages() == stages()) return "";
  return before.stages() > 1 ? fmt::format("trained in {} stages", before.stages()) : "did not train in stages";
}

}  // namespace hfta::engine
