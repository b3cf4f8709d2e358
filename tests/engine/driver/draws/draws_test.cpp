// What a sampler is asked, and with which history.

#include "engine/driver/draws/draws.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

// Has so many configurations, and remembers what it was asked.
struct Asked final : search::Sampler {
  [[nodiscard]] std::vector<trials::Params> ask(int first, int k, const search::History& seen,
                                                const trials::Params& given) override {
    history = seen;
    wanted.push_back(given);
    const trials::Params one = finds && !given.empty() ? given : trials::Params{{"hidden", std::int64_t{64}}};
    return std::vector<trials::Params>(static_cast<std::size_t>(std::clamp(size_of_space - first, 0, k)), one);
  }
  [[nodiscard]] bool learns() const override { return is_learning; }

  int size_of_space = 100;
  bool is_learning = true, finds = true;
  search::History history;
  std::vector<trials::Params> wanted;
};

const trials::Params kWide = {{"lr", 0.5}, {"hidden", std::int64_t{128}}};

}  // namespace

TEST_CASE("a draw follows from the rounds that are over") {
  const StudyConfig config = random_config(9);
  Asked sampler;
  Draws draws(config, sampler);
  CHECK(draws.wait_for_slots());
  draws.add(kWide);
  draws.add(kWide);
  draws.report(0, false, {0.5});
  draws.report(0, true, {0.5});
  draws.end(0, trials::State::kFail, 3);
  CHECK(draws.ask(2, 1, 3, nullptr).size() == 1);
  REQUIRE(sampler.history.size() == 2);
  CHECK(sampler.history[0].params == kWide);
  REQUIRE(sampler.history[0].curve.size() == 2);
  CHECK(std::isnan(sampler.history[0].curve[1]));
  CHECK(sampler.history[0].value() == 0.5);
  CHECK(!sampler.history[0].ended);  // in round 3, which is not over
  draws.take_back();
  CHECK(draws.ask(2, 1, 4, nullptr).size() == 1);
  REQUIRE(sampler.history.size() == 1);
  CHECK(sampler.history[0].ended == trials::State::kFail);
}

TEST_CASE("draws that follow from no results are asked for without a history, unless the study may end early") {
  StudyConfig config = random_config(9);
  Asked sampler;
  sampler.is_learning = false;
  Draws draws(config, sampler);
  CHECK(!draws.wait_for_slots());
  draws.add(kWide);
  draws.report(0, false, {0.5});
  draws.end(0, trials::State::kComplete, 0);
  draws.take_back();  // does nothing: there is no history
  CHECK(draws.ask(0, 2, 1, &kWide).size() == 2);
  CHECK(sampler.history.empty());
  CHECK(sampler.wanted == std::vector<trials::Params>(1));
  config.budget.epochs = 5;
  const Draws ends_early(config, sampler);
  CHECK(ends_early.wait_for_slots());
  CHECK(!ends_early.follow_results());
}

TEST_CASE("a draw that is to join another trial's array is asked for with what splits trials, then without") {
  const StudyConfig config = random_config(9);
  Asked sampler;
  Draws draws(config, sampler);
  const trials::Params given = {{"hidden", std::int64_t{128}}};
  CHECK(draws.ask(0, 1, 0, &kWide) == std::vector<trials::Params>{given});
  CHECK(sampler.wanted == std::vector<trials::Params>{given});
  sampler.finds = false;
  sampler.wanted.clear();
  CHECK(draws.ask(0, 1, 0, &kWide) == std::vector<trials::Params>{{{"hidden", std::int64_t{64}}}});
  CHECK(sampler.wanted == std::vector<trials::Params>{given, {}});
}

TEST_CASE("a sampler that had fewer configurations than asked for is exhausted until it may be asked again") {
  const StudyConfig config = random_config(9);
  Asked sampler;
  sampler.size_of_space = 3;
  Draws draws(config, sampler);
  CHECK(draws.ask(0, 3, 0, nullptr).size() == 3);
  CHECK(!draws.exhausted());
  CHECK(draws.ask(2, 2, 0, nullptr).size() == 1);
  CHECK(draws.exhausted());
  draws.ask_again();
  CHECK(!draws.exhausted());
}
