// Where the time of devices went, worked out by hand.

#include "engine/report/timeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace hfta;
using namespace hfta::engine;
using storage::ArrayRecord;
using storage::RoundRecord;

namespace {

ArrayRecord array(int number, const char* device) { return {number, device, "", 4, 1, 1, "{}"}; }

std::vector<std::pair<double, double>> spans(const DeviceTime& device) {
  std::vector<std::pair<double, double>> found;
  for (const TimedRound& round : device.rounds) found.emplace_back(round.begin, round.end);
  return found;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a round ends at the earliest where order and durations let it") {
  // a trains 2 s and 1 s; b, that ended between them, cannot have begun before 0.
  const std::vector<RoundRecord> rounds = {{0, 0, 4, 4, 2}, {1, 1, 2, 1, 5}, {2, 0, 3, 2, 1}, {3, 1, 1, 1, 1}};
  const auto timeline = timeline_of({array(0, "cuda:0"), array(1, "cpu")}, rounds, 10);
  REQUIRE(timeline);
  CHECK(timeline->seconds == 10);
  REQUIRE(timeline->devices.size() == 2);
  const DeviceTime& cpu = timeline->devices[0];
  const DeviceTime& gpu = timeline->devices[1];
  CHECK(cpu.device == "cpu");
  CHECK(spans(gpu) == std::vector<std::pair<double, double>>{{0, 2}, {4, 5}});
  CHECK(spans(cpu) == std::vector<std::pair<double, double>>{{0, 5}, {5, 6}});
  CHECK(gpu.busy == Approx(2 + 1 * 2.0 / 4));
  CHECK(gpu.empty == Approx(1 * 1.0 / 4));
  CHECK(gpu.narrowed == Approx(1 * 1.0 / 4));
  CHECK(gpu.outside == Approx(10 - 3));
  CHECK(cpu.busy == Approx(5 * 1.0 / 2 + 1 * 1.0 / 2));
  CHECK(cpu.empty == Approx(5 * 1.0 / 2));
  CHECK(cpu.narrowed == Approx(1 * 1.0 / 2));
  CHECK(cpu.outside == Approx(10 - 6));
}

TEST_CASE("an array that grew offers what it has, and two arrays of a device follow one another") {
  const auto timeline =
      timeline_of({array(0, "cpu"), array(1, "cpu")}, {{0, 0, 2, 2, 1}, {1, 0, 4, 2, 1}, {2, 1, 1, 1, 1}}, 0);
  REQUIRE(timeline);
  REQUIRE(timeline->devices.size() == 1);
  CHECK(timeline->seconds == 3);
  CHECK(timeline->devices[0].busy == Approx(1 + 0.5 + 1));
  CHECK(timeline->devices[0].empty == Approx(0.5));
  CHECK(timeline->devices[0].outside == Approx(0).margin(1e-12));
}

TEST_CASE("what no round can be makes no time") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  const std::vector<ArrayRecord> arrays = {array(0, "cpu")};
  CHECK_FALSE(timeline_of(arrays, {}, 5));
  CHECK_FALSE(timeline_of(arrays, {{0, 0, 1, 1, nan}, {1, 0, 1, 1, -1}, {2, 0, 1, 1, infinite}, {3, 0, 0, 0, 1}}, 5));
  CHECK_FALSE(timeline_of(arrays, {{0, 7, 1, 1, 1}}, 5));  // of no array that the store knows
  const auto odd = timeline_of(arrays, {{0, 0, kLeast, 1, 1}, {1, 0, kMost, kLeast, 1}, {2, 0, 1, kMost, 1}}, nan);
  REQUIRE(odd);
  CHECK(odd->seconds == 2);
  const DeviceTime& device = odd->devices[0];
  CHECK(device.busy + device.empty + device.narrowed + device.outside == Approx(2));
  CHECK(device.empty == Approx(1));
  CHECK(count(timeline_svg(*odd, "odd"), "<svg") == 1);
}

TEST_CASE("a picture has a row for each device, safe names, and a size that rounds do not grow") {
  std::vector<RoundRecord> rounds;
  for (int i = 0; i < 50'000; ++i) rounds.push_back({i, 0, 4, i % 5, 0.01});
  const auto timeline = timeline_of({array(0, "<cpu & \"co\">")}, rounds, 500);
  REQUIRE(timeline);
  const std::string picture = timeline_svg(*timeline, "a<b>");
  CHECK_THAT(picture, Catch::Contains("a&lt;b&gt;"));
  CHECK_THAT(picture, Catch::Contains("&lt;cpu &amp; &quot;co&quot;&gt;"));
  CHECK_THAT(picture, Catch::Contains("busy slots 50.0 %"));
  CHECK_THAT(picture, Catch::Contains("empty slots 50.0 %"));
  CHECK_THAT(picture, Catch::Contains("8:20"));
  CHECK(picture.size() < 400'000);

  std::vector<ArrayRecord> arrays;
  std::vector<RoundRecord> one_each;
  for (int i = 0; i < 70; ++i) {
    arrays.push_back(array(i, ("cuda:" + std::to_string(100 + i)).c_str()));
    one_each.push_back({i, i, 1, 1, 1});
  }
  const std::string many = timeline_svg(*timeline_of(arrays, one_each, 1), "many");
  CHECK(count(many, ">cuda:") == 64);
  CHECK_THAT(many, Catch::Contains("and 6 more devices"));
}

TEST_CASE("a trace has an event for each round") {
  const auto timeline = timeline_of({array(0, "cpu")}, {{0, 0, 4, 3, 2}, {1, 0, 2, 2, 1}}, 4);
  const nlohmann::json trace = nlohmann::json::parse(timeline_trace(*timeline));
  REQUIRE(trace["traceEvents"].size() == 3);
  CHECK(trace["traceEvents"][0]["args"]["name"] == "cpu");
  CHECK(trace["traceEvents"][2]["ts"] == 2e6);
  CHECK(trace["traceEvents"][2]["dur"] == 1e6);
  CHECK(trace["traceEvents"][2]["args"]["width"] == 2);
}
