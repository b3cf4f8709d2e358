// Shares of slots x seconds, from made-up rounds.

#include "engine/report/occupancy.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/report/report.hpp"

using namespace hfta::engine;
using hfta::storage::OccupancyRecord;
using hfta::storage::RoundRecord;
using hfta::trials::State;
using hfta::trials::Trial;

namespace {

// Rounds are {round, array, width, occupied, seconds}, places {array, round, slot, trial, epoch}.
struct Case {
  const char* what;
  std::vector<RoundRecord> rounds;
  std::vector<OccupancyRecord> places;
  SlotUse filling;
  std::optional<SlotUse> drain;
  double trained_again = 0, failed = 0;
};

std::vector<Trial> three_trials_the_last_failed() {
  std::vector<Trial> trials(3);
  for (int number = 0; number < 3; ++number) {
    trials[static_cast<std::size_t>(number)].number = number;
    trials[static_cast<std::size_t>(number)].state = number == 2 ? State::kFail : State::kComplete;
  }
  return trials;
}

void check_use(const SlotUse& found, const SlotUse& wanted) {
  CHECK(found.busy == Approx(wanted.busy));
  CHECK(found.empty == Approx(wanted.empty));
  CHECK(found.narrowed == Approx(wanted.narrowed));
  CHECK(found.seconds == Approx(wanted.seconds));
}

}  // namespace

TEST_CASE("occupancy: shares of slots x seconds") {
  const Case cases[] = {
      {"all busy", {{0, 0, 2, 2, 3}}, {{0, 0, 0, 0, 1}, {0, 0, 1, 1, 1}}, {1, 0, 0, 3}, {}},
      {"an empty slot", {{0, 0, 4, 1, 2}}, {{0, 0, 0, 0, 1}}, {0.25, 0.75, 0, 2}, {}},
      {"rounds weigh by their time",
       {{0, 0, 2, 1, 1}, {1, 0, 2, 2, 3}},
       {{0, 0, 0, 0, 1}, {0, 1, 0, 0, 2}, {0, 1, 1, 1, 1}},
       {7 / 8., 1 / 8., 0, 4},
       {}},
      {"narrowed before the last began",
       {{0, 0, 4, 4, 1}, {1, 0, 2, 1, 1}},
       {{0, 0, 0, 0, 1}, {0, 1, 0, 1, 1}},
       {5 / 8., 1 / 8., 2 / 8., 2},
       {}},
      {"grown: what it has then counts",
       {{0, 0, 1, 1, 1}, {1, 0, 3, 2, 1}},
       {{0, 0, 0, 0, 1}, {0, 1, 0, 1, 1}},
       {3 / 4., 1 / 4., 0, 2},
       {}},
      {"drain told apart",
       {{0, 0, 2, 2, 1}, {1, 0, 2, 1, 2}, {2, 0, 1, 1, 2}},
       {{0, 0, 0, 0, 1}, {0, 0, 1, 1, 1}, {0, 1, 0, 0, 2}, {0, 2, 0, 0, 3}},
       {1, 0, 0, 1},
       SlotUse{0.5, 0.25, 0.25, 4}},
      {"two arrays side by side: the longer one's time",
       {{0, 0, 2, 2, 1}, {0, 1, 4, 2, 3}, {1, 0, 2, 2, 1}},
       {{0, 0, 0, 0, 1}, {1, 0, 0, 1, 1}, {0, 1, 0, 2, 1}},
       {10 / 16., 6 / 16., 0, 4},
       {},
       0,
       1 / 10.},
      {"an epoch again after an interruption is no new start",
       {{0, 0, 1, 1, 1}, {1, 0, 1, 1, 1}, {2, 0, 1, 1, 2}},
       {{0, 0, 0, 0, 1}, {0, 1, 0, 0, 1}, {0, 2, 0, 0, 2}},
       {1, 0, 0, 1},
       SlotUse{1, 0, 0, 3},
       1 / 4.},
      {"time in failed trials", {{0, 0, 2, 2, 3}}, {{0, 0, 0, 0, 1}, {0, 0, 1, 2, 1}}, {1, 0, 0, 3}, {}, 0, 0.5},
      {"time that is no time",
       {{0, 0, 2, 1, -5}, {1, 0, 2, 2, 1}},
       {{0, 0, 0, 0, 1}, {0, 1, 0, 1, 1}},
       {1, 0, 0, 1},
       {}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const auto found = occupancy_of(c.rounds, c.places, three_trials_the_last_failed());
    REQUIRE(found);
    check_use(found->filling, c.filling);
    REQUIRE(found->drain.has_value() == c.drain.has_value());
    if (c.drain) check_use(*found->drain, *c.drain);
    CHECK(found->trained_again == Approx(c.trained_again));
    CHECK(found->failed == Approx(c.failed));
  }
}

TEST_CASE("occupancy: none without rounds, places or time") {
  CHECK_FALSE(occupancy_of({}, {}, {}));
  CHECK_FALSE(occupancy_of({{0, 0, 2, 2, 1}}, {}, {}));
  CHECK_FALSE(occupancy_of({{0, 0, 2, 2, 0}}, {{0, 0, 0, 0, 1}}, {}));
  // A damaged width that would overflow to the largest one.
  CHECK_FALSE(occupancy_of({{0, 0, std::numeric_limits<int>::min(), 1, 1}}, {{0, 0, 0, 0, 1}}, {}));
  CHECK(occupancy_text({}).empty());
}

TEST_CASE("occupancy: in the table's last lines and in JSON") {
  ReportInput input{"s", {{"val_loss", hfta::trials::Goal::kMinimize}}, three_trials_the_last_failed(), {}};
  CHECK(report_table(input, 5).find("slots:") == std::string::npos);
  CHECK(nlohmann::json::parse(report_json(input, {}))["occupancy"].is_null());
  input.rounds = {{0, 0, 4, 4, 1}, {1, 0, 2, 1, 1}, {1, 1, 8, 7, 1}, {2, 0, 2, 2, 2}};
  input.occupancy = occupancy_of(input.rounds, {{0, 0, 0, 0, 1}, {1, 1, 0, 1, 1}, {0, 2, 0, 0, 2}}, input.trials);
  CHECK_THAT(report_table(input, 5),
             Catch::EndsWith("slots: 75.0 % busy until the last trial began (arrays 4 to 8 wide); lost: 12.5 % empty, "
                             "12.5 % narrowed\n  then 50.0 % busy for 2.0 s; 0.0 % of the training trained again, "
                             "0.0 % in trials that failed\n"));
  const nlohmann::json object = nlohmann::json::parse(report_json(input, {}))["occupancy"];
  CHECK(object["widths"] == nlohmann::json({4, 8}));
  CHECK(object["filling"]["busy"] == 0.75);
  CHECK(object["drain"]["narrowed"] == 0.5);
  CHECK(object["trained_again"] == 0.0);
}
