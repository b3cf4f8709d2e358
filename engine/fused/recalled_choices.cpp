#include "engine/fused/recalled_choices.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/fused/choice_keys.hpp"

namespace hfta::engine {

bool RecalledChoices::may_go_on(const Division& division) const {
  return setup_.ranks() > 1 && division.parts.size() == static_cast<std::size_t>(setup_.ranks()) &&
         agrees(division, setup_.config().divide);
}

std::string RecalledChoices::recall(const std::string& partition, const std::string& graph,
                                    const std::string& choices_json) {
  std::optional<KeptChoices> kept = recorded_choices(choices_json);
  if (!kept) return "";
  if (const std::string number = beyond_bounds(*kept); !number.empty()) {
    return fmt::format(
        "{}{}{}: the store says that the study ran with {}, which no run chooses: ways to run are measured "
        "anew",
        setup_.options().label, partition.empty() ? "" : ", ", partition, number);
  }
  // An unknown graph is compared when its array is opened.
  const ChoiceKey now = choice_key(setup_, graph, kept->key.width);
  const std::string difference = difference_of(kept->key, now);
  const auto line = [&](const std::string& what) {
    return fmt::format("{}{}{}: the study {} before; results from now on agree with it only up to rounding",
                       setup_.options().label, partition.empty() ? "" : ", ", partition, what);
  };
  if (!difference.empty()) return line(fmt::format("ran with {}", difference));
  if (!are_runnable(setup_, *kept)) return "";  // no run of ours wrote that: ways are measured again
  if (const std::string in_stages = difference_in_stages(*kept); !in_stages.empty()) return line(in_stages);
  const std::string in_batches = difference_in_batches(*kept);
  whole_batches_.erase(partition);
  if (!kept->divides_batches()) whole_batches_.insert(partition);
  if (kept->ranks && !may_go_on(kept->ranks->chosen)) kept->ranks.reset();
  kept->choices.how = fusion::ChoiceOrigin::kRecalled;
  recalled_.insert_or_assign(partition, *std::move(kept));
  return in_batches.empty() ? "" : line(in_batches);
}

// Only the first rank compares and tells the user; the others do as it says.
std::string RecalledChoices::difference_in_batches(const KeptChoices& before) const {
  if (setup_.options().group != nullptr && setup_.options().group->rank() > 0) return "";
  if (before.divides_batches()) {
    const Division& division = before.ranks->chosen;
    return may_go_on(division) ? "" : fmt::format("divided its batches among {} ranks", division.parts.size());
  }
  const Divide divide = setup_.config().divide;
  const bool now = setup_.ranks() > 1 && (divide == Divide::kBatches || divide == Divide::kEvenBatches);
  return now ? "did not divide its batches" : "";
}

// A cut changes bits, since kernels compute several calls at once, but not over a cut.
std::string RecalledChoices::difference_in_stages(const KeptChoices& before) const {
  if (before.stages() == setup_.stages()) return "";
  return before.stages() > 1 ? fmt::format("trained in {} stages", before.stages()) : "did not train in stages";
}

KeptChoices* RecalledChoices::find(const std::string& partition) {
  const auto found = recalled_.find(partition);
  return found == recalled_.end() ? nullptr : &found->second;
}

const KeptChoices* RecalledChoices::find(const std::string& partition) const {
  const auto found = recalled_.find(partition);
  return found == recalled_.end() ? nullptr : &found->second;
}

bool RecalledChoices::had_whole_batches(const std::string& partition) const {
  return whole_batches_.contains(partition);
}

}  // namespace hfta::engine
