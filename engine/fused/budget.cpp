#include "engine/fused/budget.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "base/bytes.hpp"

namespace hfta::engine {
namespace {

bool is_variant(const WayNeed& way, const WayNeed& first) {
  return way.lowering.executor == first.lowering.executor && way.lowering.chunk == first.lowering.chunk;
}

// Of the variants of the first way, which alone decide whether a trial fits.
const WayNeed& leanest(std::span<const WayNeed> ways) {
  const WayNeed* least = &ways.front();
  for (const WayNeed& way : ways) {
    if (is_variant(way, ways.front()) && way.total(1) < least->total(1)) least = &way;
  }
  return *least;
}

// The most slots that fit, for each way.
std::vector<int> all_most(std::span<const WayNeed> ways, std::int64_t room, int widest) {
  std::vector<int> most;
  for (const WayNeed& way : ways) most.push_back(way.most_slots(room, widest));
  return most;
}

}  // namespace

int WayNeed::most_slots(std::int64_t room, int widest) const {
  if (total(1) > room) return 0;
  return static_cast<int>(std::min<std::int64_t>(widest, need.most_slots(room, std::min(working, widest))));
}

bool WayNeed::is_leaner_than(const WayNeed& other) const {
  const auto at_work = [](const WayNeed& way) {
    return static_cast<double>(way.working) * static_cast<double>(way.need.activations);
  };
  return at_work(*this) < at_work(other);
}

Budgeted within(std::span<const WayNeed> ways, std::int64_t room, int widest, int enough) {
  const WayNeed& first = ways.front();
  const std::vector<int> most = all_most(ways, room, widest);
  int best = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) best = is_variant(ways[i], first) ? std::max(best, most[i]) : best;
  const int wanted = std::min(enough, best);
  Budgeted found;
  found.plenty = most.front() >= enough;
  found.width = found.plenty ? most.front() : best;
  for (std::size_t i = 0; i < ways.size() && !found.plenty; ++i) {
    if (is_variant(ways[i], first) && most[i] >= wanted) found.width = std::min(found.width, most[i]);
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (most[i] < std::max(1, found.width)) continue;
    const bool gains_nothing = found.plenty && is_variant(ways[i], first) && ways[i].is_leaner_than(first);
    (gains_nothing ? found.spare : found.ways).push_back(ways[i]);
  }
  if (found.ways.empty()) found.ways.push_back(leanest(ways));
  return found;
}

MemoryPlan memory_plan(std::span<const WayNeed> ways, const Budgeted& budgeted, std::int64_t room, int widest) {
  MemoryPlan plan{room, budgeted.plenty, {}};
  for (const WayNeed& way : ways) {
    if (!is_variant(way, ways.front())) continue;
    const bool open = std::any_of(budgeted.ways.begin(), budgeted.ways.end(),
                                  [&](const WayNeed& one) { return one.lowering == way.lowering; });
    plan.ways.push_back(
        {way.lowering.to_text(), way.need, way.working, way.most_slots(room, widest), open && budgeted.width > 0});
  }
  return plan;
}

std::string misfit_text(const Misfit& misfit) {
  const WayNeed& least = leanest(misfit.ways);
  const bool alike = bytes_text(misfit.room) == bytes_text(least.total(1));  // once they are rounded
  const auto exact = [&](std::int64_t bytes) { return alike ? fmt::format("{} bytes", bytes) : bytes_text(bytes); };
  std::string text = fmt::format(
      "found {}{}, wanted at least {}: one trial takes {}{} for its weights and optimizer state, and {} for a batch of "
      "{} samples",
      exact(misfit.room), misfit.sharers > 1 ? fmt::format(" for each of {} devices", misfit.sharers) : "",
      exact(least.total(1)), misfit.stages > 1 ? fmt::format("in each of {} stages about ", misfit.stages) : "",
      bytes_text(least.need.slot + least.need.shared), bytes_text(least.need.activations), misfit.samples);
  if (!misfit.recomputing.empty() && leanest(misfit.recomputing).total(1) < least.total(1)) {
    text += fmt::format("; with policy recompute {} would do", bytes_text(leanest(misfit.recomputing).total(1)));
  }
  if (misfit.smaller_batch > 0) text += fmt::format("; a batch of {} would fit", misfit.smaller_batch);
  return text;
}

}  // namespace hfta::engine
