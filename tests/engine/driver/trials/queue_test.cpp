// Trials that wait for slots: whom the queue names, held against a plain walk through all of them.

#include "engine/driver/trials/queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

constexpr int kTrials = 98;

struct Waiting {
  explicit Waiting(const StudyConfig& config) : table(config, {kTrials}), queue(table) {
    for (int number = 0; number < kTrials; ++number) {
      table.assign(table.add(number, {}), fmt::format("hidden={}", number % 7));
    }
  }
  // Epochs by partition, counted anew.
  [[nodiscard]] std::map<std::string, double> work() {
    std::map<std::string, double> sums;
    for (const int draw : inside) sums[table.entry(draw).partition] += table.epochs_to_target(draw);
    return sums;
  }
  [[nodiscard]] std::map<std::string, int> sizes() {
    std::map<std::string, int> counts;
    for (const int draw : inside) ++counts[table.entry(draw).partition];
    return counts;
  }

  TrialTable table;
  ReadyQueue queue;
  std::set<int> inside;
};

}  // namespace

TEST_CASE("the queue knows work and trials of every partition while trials come and go") {
  const StudyConfig config = digits_config();
  Waiting waiting(config);
  CountedRandom random(1, Stream::kSimulation, 0);
  for (int step = 0; step < 2000; ++step) {
    const auto draw = static_cast<int>(random.below(kTrials));
    if (waiting.inside.insert(draw).second) {
      waiting.queue.push(draw);
    } else {
      waiting.inside.erase(draw);
      waiting.queue.take(draw);
    }
    const auto work = waiting.work();
    const auto sizes = waiting.sizes();
    std::vector<std::string> names;
    double all = 0;
    int most = 0;
    for (const auto& [name, epochs] : work) {
      names.push_back(name);
      all += epochs;
      most = std::max(most, sizes.at(name));
      REQUIRE(waiting.queue.work(name) == epochs);
      REQUIRE(waiting.queue.ready(name) == sizes.at(name));
    }
    std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return work.at(a) > work.at(b); });
    REQUIRE(waiting.queue.richest(100) == names);
    names.resize(std::min<std::size_t>(names.size(), 2));
    REQUIRE(waiting.queue.richest(2) == names);
    REQUIRE(waiting.queue.work() == all);
    REQUIRE(waiting.queue.most_ready() == most);
    REQUIRE(waiting.queue.ready() == static_cast<int>(waiting.inside.size()));
    if (!waiting.inside.empty()) REQUIRE(waiting.queue.earliest() == *waiting.inside.begin());
    REQUIRE(waiting.queue.ready_before(draw) ==
            std::distance(waiting.inside.begin(), waiting.inside.lower_bound(draw)));
  }
}

TEST_CASE("who was trained before comes first, then the earlier draw") {
  const StudyConfig config = digits_config();
  Waiting waiting(config);
  for (const int draw : {21, 14, 7}) waiting.queue.push(draw);
  CHECK(waiting.queue.front("hidden=0") == 7);
  waiting.table.entry(28).recorded = 1;
  waiting.queue.push(28);
  CHECK(waiting.queue.front("hidden=0") == 28);
  waiting.queue.take(28);
  waiting.queue.take(7);
  CHECK(waiting.queue.front("hidden=0") == 14);
}
