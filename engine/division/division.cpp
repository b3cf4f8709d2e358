#include "engine/division/division.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/json_int.hpp"
#include "fusion/collectives.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

constexpr double kNoise = 1.03;  // plans whose predictions differ less are taken to be equally fast
constexpr int kMostUnits = 1024;
constexpr const char* kNames[] = {"batches", "slots", "stages"};  // names by Division::Of

using TimeOf = std::function<double(std::size_t rank, int units)>;

// The numbers of units, at least `least` for each rank, with which the slowest rank is done first. Each unit goes where
// it is done first; that is optimal if more units never take less time.
std::vector<int> fastest_parts(std::size_t ranks, int units, int least, const TimeOf& time) {
  std::vector<int> parts(ranks, least);
  for (int given = least * static_cast<int>(ranks); given < units; ++given) {
    std::size_t best = 0;
    double soonest = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < ranks; ++r) {
      const double seconds = time(r, parts[r] + 1);
      if (seconds < soonest) {
        soonest = seconds;
        best = r;
      }
    }
    ++parts[best];
  }
  return parts;
}

double slowest(const std::vector<int>& parts, const TimeOf& time) {
  double seconds = 0;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    if (parts[r] > 0) seconds = std::max(seconds, time(r, parts[r]));
  }
  return seconds;
}

// The seconds on the line through the two measured sizes around it, or next to it.
double seconds_of(const std::map<std::int64_t, double>& of_samples, double samples) {
  if (of_samples.size() == 1) return of_samples.begin()->second;
  auto above = of_samples.lower_bound(static_cast<std::int64_t>(std::ceil(samples)));
  if (above == of_samples.end()) above = std::prev(above);
  if (above == of_samples.begin()) above = std::next(above);
  const auto below = std::prev(above);
  const double part = (samples - static_cast<double>(below->first)) / static_cast<double>(above->first - below->first);
  return std::max(0.0, below->second + part * (above->second - below->second));
}

std::vector<int> in_lowest_terms(std::vector<int> parts) {
  int common = 0;
  for (const int part : parts) common = std::gcd(common, part);
  for (int& part : parts) part /= std::max(1, common);
  return parts;
}

}  // namespace

std::string Division::to_text() const {
  return fmt::format("{} {}", kNames[static_cast<int>(of)], fmt::join(parts, ":"));
}

std::vector<std::int64_t> sizes_to_time(std::int64_t batch, bool batches,
                                        const std::function<bool(std::int64_t)>& allowed) {
  std::vector<std::int64_t> sizes = {batch};
  for (const std::int64_t wanted : {(batch + 1) / 2, (batch + 3) / 4}) {
    if (!batches) continue;
    const auto fits = [&](std::int64_t size) { return size >= 1 && size < batch && allowed(size); };
    for (std::int64_t off = 0; off < batch; ++off) {
      if (!fits(wanted + off) && !fits(wanted - off)) continue;
      sizes.push_back(fits(wanted + off) ? wanted + off : wanted - off);
      break;
    }
  }
  return sizes;
}

std::vector<RankPlan> rank_plans(const RankQuestion& question) {
  const std::size_t ranks = question.ranks.size();
  const auto width = static_cast<int>(question.ranks.front().of_slots.size());
  const TimeOf of_slots = [&](std::size_t r, int slots) {
    return question.ranks[r].of_slots[static_cast<std::size_t>(slots) - 1];
  };
  const std::vector<int> slots = fastest_parts(ranks, width, 0, of_slots);
  std::vector<RankPlan> plans;
  plans.push_back({Division{Division::Of::kSlots, slots}, slowest(slots, of_slots)});
  if (!question.batches) return plans;
  const auto batch = question.ranks.front().of_samples.rbegin()->first;
  const int units = std::max(static_cast<int>(std::min<std::int64_t>(batch, kMostUnits)), static_cast<int>(ranks));
  const TimeOf of_units = [&](std::size_t r, int count) {
    return seconds_of(question.ranks[r].of_samples, static_cast<double>(batch) * count / units);
  };
  const auto add = [&](const std::vector<int>& parts, double seconds) {
    const Division division{Division::Of::kBatches, in_lowest_terms(parts)};
    if (division != plans.back().division) plans.push_back({division, seconds + question.exchange_seconds});
  };
  double evenly = 0;
  for (const RankTimes& rank : question.ranks) {
    evenly = std::max(evenly, seconds_of(rank.of_samples, static_cast<double>(batch) / static_cast<double>(ranks)));
  }
  add(std::vector<int>(ranks, 1), evenly);
  const std::vector<int> by_speed = fastest_parts(ranks, units, 1, of_units);
  add(by_speed, slowest(by_speed, of_units));
  return plans;
}

RankPlan plan_of_stages(int ranks) {
  return {Division{Division::Of::kStages, std::vector<int>(static_cast<std::size_t>(ranks), 1)}};
}

bool agrees(const Division& division, Divide divide) {
  const bool even = std::all_of(division.parts.begin(), division.parts.end(), [](int part) { return part == 1; });
  switch (divide) {
    case Divide::kAuto:
      return division.of != Division::Of::kStages;
    case Divide::kBatches:
      return division.of == Division::Of::kBatches;
    case Divide::kEvenBatches:
      return division.of == Division::Of::kBatches && even;
    case Divide::kSlots:
      return division.of == Division::Of::kSlots;
    case Divide::kStages:
      return division.of == Division::Of::kStages;
  }
  return false;
}

bool is_choice_of(const RankPlans& plans, int ranks, Divide divide) {
  return plans.chosen.parts.size() == static_cast<std::size_t>(ranks) && agrees(plans.chosen, divide) &&
         std::all_of(plans.plans.begin(), plans.plans.end(),
                     [&](const RankPlan& plan) { return plan.tried_seconds > 0 || !agrees(plan.division, divide); });
}

const RankPlan& chosen_of(const std::vector<RankPlan>& plans, Divide divide) {
  const auto known = [](const RankPlan& plan) {
    return plan.tried_seconds > 0 ? plan.tried_seconds : plan.predicted_seconds;
  };
  double least = std::numeric_limits<double>::infinity();
  const RankPlan* chosen = nullptr;
  for (const RankPlan& plan : plans) {
    if (agrees(plan.division, divide)) least = std::min(least, known(plan));
  }
  for (const RankPlan& plan : plans) {
    if (chosen == nullptr && agrees(plan.division, divide) && known(plan) <= kNoise * least) chosen = &plan;
  }
  if (chosen != nullptr) return *chosen;
  std::vector<std::string> found;
  found.reserve(plans.size());
  for (const RankPlan& plan : plans) found.push_back(plan.division.to_text());
  throw Error(ErrorKind::kInternal, fmt::format("array.divide: found the plans {}, wanted one that {} allows",
                                                fmt::join(found, ", "), name_of(divide)));
}

std::vector<SlotPlace> deal_slots(int slots, const std::vector<int>& parts) {
  std::vector<int> dealt(parts.size(), 0);
  std::vector<SlotPlace> places;
  for (int slot = 0; slot < slots; ++slot) {
    std::size_t best = 0;
    for (std::size_t r = 1; r < parts.size(); ++r) {  // parts[r] / (dealt[r] + 1) > parts[best] / (dealt[best] + 1)
      if (std::int64_t{parts[r]} * (dealt[best] + 1) > std::int64_t{parts[best]} * (dealt[r] + 1)) best = r;
    }
    places.push_back({static_cast<int>(best), dealt[best]++});
  }
  return places;
}

std::vector<int> slots_of_ranks(int slots, const std::vector<int>& parts) {
  std::vector<int> counts(parts.size(), 0);
  for (const SlotPlace& place : deal_slots(slots, parts)) ++counts[static_cast<std::size_t>(place.rank)];
  return counts;
}

ordered_json division_json(const Division& division) {
  return {{"of", kNames[static_cast<int>(division.of)]}, {"parts", division.parts}};
}

std::optional<Division> division_from(const ordered_json& json) {
  Division division;
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), json.at("of").get<std::string>());
  if (name == std::end(kNames)) return std::nullopt;
  division.of = static_cast<Division::Of>(name - std::begin(kNames));
  const int least = division.of == Division::Of::kSlots ? 0 : 1;
  const int most = division.of == Division::Of::kStages ? 1 : fusion::kMostParts;
  for (const ordered_json& part : json.at("parts")) {
    division.parts.push_back(int_from(part));
    if (division.parts.back() < least || division.parts.back() > most) return std::nullopt;
  }
  const bool any = std::any_of(division.parts.begin(), division.parts.end(), [](int part) { return part > 0; });
  return any && division.parts.size() <= fusion::kMostRanks ? std::optional(division) : std::nullopt;
}

ordered_json to_json(const RankPlans& plans) {
  ordered_json all = ordered_json::array();
  for (const RankPlan& plan : plans.plans) {
    all.push_back(division_json(plan.division));
    all.back()["predicted_seconds"] = plan.predicted_seconds;
    all.back()["tried_seconds"] = plan.tried_seconds;
  }
  return {{"chosen", division_json(plans.chosen)}, {"width", plans.width}, {"plans", std::move(all)}};
}

std::optional<RankPlans> rank_plans_from(const ordered_json& json) {
  try {
    const std::optional<Division> chosen = division_from(json.at("chosen"));
    if (!chosen) return std::nullopt;
    RankPlans plans{*chosen, {}, json.contains("width") ? int_from(json.at("width")) : 0};
    for (const ordered_json& entry : json.at("plans")) {
      const std::optional<Division> division = division_from(entry);
      if (!division) return std::nullopt;
      plans.plans.push_back(
          {*division, entry.at("predicted_seconds").get<double>(), entry.at("tried_seconds").get<double>()});
    }
    return plans;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

}  // namespace hfta::engine
