// How ranks share arrays: predictions against brute force, and what is chosen.
#include "engine/division/division.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "fusion/collectives.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

RankTimes times_of(double per_slot, int width, std::int64_t batch, double fixed = 0) {
  RankTimes times;
  for (int slots = 1; slots <= width; ++slots) times.of_slots.push_back(per_slot * slots);
  for (const std::int64_t n : {batch, (batch + 1) / 2, (batch + 3) / 4}) {
    times.of_samples[n] = fixed + per_slot * width * static_cast<double>(n) / static_cast<double>(batch);
  }
  return times;
}

// Every way to give `units` to ranks from the r-th on; the least of the longest times.
double best_of_all(const std::vector<std::function<double(int)>>& times, int units, int least, std::size_t r = 0) {
  if (r + 1 == times.size()) return units < least ? std::numeric_limits<double>::infinity() : times[r](units);
  double best = std::numeric_limits<double>::infinity();
  for (int own = least; own <= units; ++own) {
    best = std::min(best, std::max(times[r](own), best_of_all(times, units - own, least, r + 1)));
  }
  return best;
}

const RankPlan& plan_of(const std::vector<RankPlan>& plans, Division::Of of, bool last) {
  const RankPlan* found = nullptr;
  for (const RankPlan& plan : plans) {
    if (plan.division.of == of && (found == nullptr || last)) found = &plan;
  }
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("no division of slots or of a batch is faster than the planned ones") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> number(0, 1);
  for (int trial = 0; trial < 200; ++trial) {
    const int ranks = 2 + trial % 3, width = 1 + trial % 7;
    const std::int64_t batch = 8 + trial % 17;
    RankQuestion question;
    std::vector<std::function<double(int)>> of_slots, of_samples;
    for (int r = 0; r < ranks; ++r) {
      RankTimes& times = question.ranks.emplace_back();
      double slot = 0;
      for (int b = 0; b < width; ++b) times.of_slots.push_back(slot += number(random) < 0.3 ? 0 : number(random));
      const double fixed = number(random), each = number(random) / 4;
      for (const std::int64_t n : {batch, batch / 2, batch / 4}) {
        times.of_samples[n] = fixed + each * static_cast<double>(n);
      }
      of_slots.emplace_back(
          [own = times.of_slots](int b) { return b == 0 ? 0 : own[static_cast<std::size_t>(b) - 1]; });
      of_samples.emplace_back([fixed, each](int n) { return fixed + each * n; });
    }
    question.exchange_seconds = number(random);
    const std::vector<RankPlan> plans = rank_plans(question);
    const RankPlan& slots = plan_of(plans, Division::Of::kSlots, false);
    CHECK(std::accumulate(slots.division.parts.begin(), slots.division.parts.end(), 0) == width);
    CHECK(slots.predicted_seconds == Approx(best_of_all(of_slots, width, 0)));
    const RankPlan& batches = plan_of(plans, Division::Of::kBatches, true);
    CHECK(batches.predicted_seconds - question.exchange_seconds ==
          Approx(best_of_all(of_samples, static_cast<int>(batch), 1)));
  }
}

TEST_CASE("ranks of one speed share alike, and a slow one gets less") {
  const std::vector<RankPlan> even = rank_plans({{times_of(2, 4, 64), times_of(2, 4, 64)}, 0.5});
  REQUIRE(even.size() == 2);  // by speed is evenly
  CHECK(even[0].division.to_text() == "slots 2:2");
  CHECK(even[0].predicted_seconds == Approx(4));
  CHECK(even[1].division.to_text() == "batches 1:1");
  CHECK(even[1].predicted_seconds == Approx(4.5));
  const std::vector<RankPlan> uneven = rank_plans({{times_of(1, 4, 64), times_of(3, 4, 64)}, 0});
  REQUIRE(uneven.size() == 3);
  CHECK(uneven[0].division.to_text() == "slots 3:1");
  CHECK(uneven[1].predicted_seconds == Approx(6));
  CHECK(uneven[2].division.to_text() == "batches 3:1");
  CHECK(uneven[2].predicted_seconds == Approx(3));
  const std::vector<RankPlan> one = rank_plans({{times_of(3, 1, 1), times_of(1, 1, 1)}, 0, false});
  REQUIRE(one.size() == 1);
  CHECK(one[0].division.to_text() == "slots 0:1");
}

TEST_CASE("a huge batch is divided in parts that can be written") {
  const std::int64_t batch = std::int64_t{1} << 30;
  const std::vector<RankPlan> plans = rank_plans({{times_of(1, 1, batch), times_of(2, 1, batch)}, 0});
  for (const int part : plans.back().division.parts) CHECK(part <= fusion::kMostParts);
  CHECK(plans.back().predicted_seconds == Approx(2.0 / 3).epsilon(0.002));
  const std::vector<RankPlan> few = rank_plans({{times_of(1, 1, 2), times_of(1, 1, 2), times_of(1, 1, 2)}, 0});
  CHECK(few.back().division.to_text() == "batches 1:1:1");
}

TEST_CASE("the simplest of the plans that are about as fast is chosen, of those that were asked for") {
  const Division slots{Division::Of::kSlots, {2, 1}}, even{Division::Of::kBatches, {1, 1}},
      uneven{Division::Of::kBatches, {3, 1}};
  const auto chosen = [&](double s, double e, double u, Divide divide = Divide::kAuto) {
    return chosen_of({{slots, 0, s}, {even, 0, e}, {uneven, 0.95, u}}, divide).division;
  };
  CHECK(chosen(1.02, 1, 1) == slots);
  CHECK(chosen(1.1, 1.02, 1) == even);
  CHECK(chosen(1.1, 1.1, 1) == uneven);
  CHECK(chosen(1, 2, 3, Divide::kBatches) == even);
  CHECK(chosen(1, 3, 2, Divide::kBatches) == uneven);
  CHECK(chosen(1, 3, 2, Divide::kEvenBatches) == even);
  CHECK(chosen(4, 3, 2, Divide::kSlots) == slots);
  CHECK(chosen(0.9, 1, 0) == slots);  // a plan that was not tried is judged by its prediction, here 0.95
  CHECK(chosen(1.1, 1, 0) == uneven);
  CHECK_THROWS_WITH(static_cast<void>(chosen_of({{slots, 1, 1}, {uneven, 1, 1}}, Divide::kEvenBatches)),
                    "array.divide: found the plans slots 2:1, batches 3:1, wanted one that batches_evenly allows");
}

TEST_CASE("a division agrees with the settings that may have chosen it, and stages only with their own") {
  const Division slots{Division::Of::kSlots, {1, 1}}, even{Division::Of::kBatches, {1, 1}},
      uneven{Division::Of::kBatches, {3, 1}}, stages{Division::Of::kStages, {1, 1}};
  struct Case {
    const Division& division;
    std::vector<Divide> agrees_with;
  };
  const Case cases[] = {{slots, {Divide::kAuto, Divide::kSlots}},
                        {even, {Divide::kAuto, Divide::kBatches, Divide::kEvenBatches}},
                        {uneven, {Divide::kAuto, Divide::kBatches}},
                        {stages, {Divide::kStages}}};
  for (const Case& c : cases) {
    for (const auto& [name, divide] : kDivides) {
      INFO(c.division.to_text() << " " << name);
      CHECK(agrees(c.division, divide) ==
            (std::find(c.agrees_with.begin(), c.agrees_with.end(), divide) != c.agrees_with.end()));
    }
  }
}

TEST_CASE("there is one plan of stages, which nothing has to be timed for") {
  const RankPlan plan = plan_of_stages(3);
  CHECK(plan.division.to_text() == "stages 1:1:1");
  CHECK(chosen_of({plan}, Divide::kStages) == plan);
  CHECK(division_from(ordered_json::parse(division_json(plan.division).dump())) == plan.division);
}

TEST_CASE("settings are named as in configs") {
  for (const auto& [name, divide] : kDivides) CHECK(name_of(divide) == std::string(name));
}

TEST_CASE("what was chosen under another setting, or by other ranks, is not what these would have chosen") {
  const Division slots{Division::Of::kSlots, {2, 1}}, even{Division::Of::kBatches, {1, 1}},
      uneven{Division::Of::kBatches, {3, 1}};
  struct Case {
    Division chosen;
    double slots, even, uneven;  // tried; 0: not
    std::vector<Divide> choices_of;
  };
  const Case cases[] = {
      {slots, 1, 2, 3, {Divide::kAuto, Divide::kSlots}},
      {slots, 1, 0, 0, {Divide::kSlots}},
      {even, 0, 1, 0, {Divide::kEvenBatches}},
      {even, 0, 1, 2, {Divide::kBatches, Divide::kEvenBatches}},
      {uneven, 3, 2, 1, {Divide::kAuto, Divide::kBatches}},
      {uneven, 0, 0, 0, {}},
  };
  for (const Case& c : cases) {
    const RankPlans plans{c.chosen, {{slots, 1, c.slots}, {even, 1, c.even}, {uneven, 1, c.uneven}}, 4};
    for (const auto& [name, divide] : kDivides) {
      INFO(c.chosen.to_text() << " " << name);
      const bool wanted = std::find(c.choices_of.begin(), c.choices_of.end(), divide) != c.choices_of.end();
      CHECK(is_choice_of(plans, 2, divide) == wanted);
      CHECK_FALSE(is_choice_of(plans, 3, divide));
    }
  }
}

TEST_CASE("batches are timed by sizes that the model allows") {
  struct Case {
    std::int64_t batch;
    bool batches;
    std::function<bool(std::int64_t)> allowed;
    std::vector<std::int64_t> sizes;
  };
  const auto any = [](std::int64_t) { return true; };
  const Case cases[] = {
      {64, true, any, {64, 32, 16}},
      {50, true, any, {50, 25, 13}},
      {50, true, [](std::int64_t n) { return n % 2 == 0; }, {50, 26, 14}},
      {48, true, [](std::int64_t n) { return n >= 20; }, {48, 24, 20}},
      {32, true, [](std::int64_t n) { return n == 32; }, {32}},
      {32, true, [](std::int64_t) { return false; }, {32}},
      {32, false, [](std::int64_t n) { return n == 32; }, {32}},
      {1, true, any, {1}},
  };
  for (const Case& c : cases) CHECK(sizes_to_time(c.batch, c.batches, c.allowed) == c.sizes);
}

TEST_CASE("plans need no more than the time of a whole batch") {
  RankTimes times{{1, 2}, {{64, 2.0}}};
  const std::vector<RankPlan> whole = rank_plans({{times, times}, 0, false});
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].division.to_text() == "slots 1:1");
  CHECK(rank_plans({{times, times}, 0.5, true}).at(1).predicted_seconds == Approx(2.5));
}

TEST_CASE("slots are dealt by parts, and keep their places in a wider array") {
  for (const std::vector<int>& parts : {std::vector{3, 1}, {0, 2}, {1, 1, 1}, {5, 0, 2}, {1 << 20, 1}}) {
    const int all = std::min(64, std::accumulate(parts.begin(), parts.end(), 0));
    const std::vector<SlotPlace> places = deal_slots(64, parts);
    std::vector<int> count(parts.size(), 0);
    for (int slot = 0; slot < 64; ++slot) {
      const SlotPlace& place = places[static_cast<std::size_t>(slot)];
      CHECK(place.slot == count[static_cast<std::size_t>(place.rank)]++);
      if (slot + 1 == all && all < 64) CHECK(count == parts);
      const SlotPlace narrow = deal_slots(slot + 1, parts).back();
      CHECK((narrow.rank == place.rank && narrow.slot == place.slot));
    }
    for (std::size_t r = 0; r < parts.size(); ++r) CHECK((parts[r] > 0 || count[r] == 0));
  }
}

TEST_CASE("plans come back from their JSON, and what no run wrote does not") {
  RankPlans plans;
  plans.chosen = {Division::Of::kSlots, {2, 0}};
  plans.plans.push_back({plans.chosen, 0.25, 0.125});
  plans.plans.push_back({{Division::Of::kBatches, {7, 1}}, 1.0 / 3, 0});
  plans.width = 8;
  CHECK(rank_plans_from(ordered_json::parse(to_json(plans).dump())) == plans);
  ordered_json older = to_json(plans);
  older.erase("width");
  CHECK(rank_plans_from(older)->width == 0);
  for (const char* chosen : {R"({"of": "slots", "parts": [0, 0]})", R"({"of": "slots", "parts": []})",
                             R"({"of": "slots", "parts": [-1, 2]})", R"({"of": "batches", "parts": [0, 1]})",
                             R"({"of": "stages", "parts": [0, 1]})", R"({"of": "stages", "parts": [2, 1]})",
                             R"({"of": "rows", "parts": [1, 1]})", R"({"of": "slots", "parts": [1, 1048577]})",
                             R"({"of": "slots", "parts": [1, 1e300]})", R"({"of": 1, "parts": [1]})", "7", "null"}) {
    ordered_json json = to_json(plans);
    json["chosen"] = ordered_json::parse(chosen);
    CHECK_FALSE(rank_plans_from(json));
  }
  ordered_json many = to_json(plans);
  many["chosen"]["parts"] = std::vector<int>(fusion::kMostRanks + 1, 1);
  CHECK_FALSE(rank_plans_from(many));
  CHECK_FALSE(rank_plans_from(ordered_json::object()));
}

}  // namespace hfta::engine
