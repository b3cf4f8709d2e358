// The driver's parts, one by one.

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "engine/driver/device_workers.hpp"
#include "engine/driver/measure.hpp"
#include "engine/driver/progress.hpp"
#include "engine/driver/widths.hpp"

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("widths come out even") {
  struct Case {
    int waiting, limit, parts, width;
  };
  const Case cases[] = {{9, 8, 1, 5},    {8, 8, 1, 8},    {1, 8, 1, 1},      {16, 8, 1, 8}, {17, 8, 1, 6},
                        {3, 100, 1, 3},  {16, 16, 2, 8},  {16, 16, 3, 6},    {2, 16, 3, 1}, {5, 1, 1, 1},
                        {49, 16, 1, 13}, {49, 16, 2, 13}, {7, 1000000, 1, 7}};
  for (const Case& c : cases) {
    CAPTURE(c.waiting, c.limit, c.parts);
    CHECK(even_width(c.waiting, c.limit, c.parts) == c.width);
  }
  for (int waiting = 1; waiting <= 60; ++waiting) {
    for (int limit = 1; limit <= 20; ++limit) {
      const int width = even_width(waiting, limit, 1);
      REQUIRE(width <= limit);
      REQUIRE(width * ((waiting + limit - 1) / limit) >= waiting);  // no more arrays than the limit asks for
    }
  }
}

TEST_CASE("a width changes only where that pays") {
  struct Case {
    int width, wanted, limit;
    std::optional<int> better;
  };
  const Case cases[] = {{8, 8, 8, {}}, {8, 7, 8, {}},    {8, 6, 8, 6},  {8, 1, 8, 1}, {4, 3, 8, 3},
                        {3, 2, 8, 2},  {8, 20, 8, {}},   {5, 20, 8, 7}, {2, 9, 8, 5}, {6, 7, 8, {}},
                        {6, 8, 8, 8},  {16, 17, 16, {}}, {1, 1, 8, {}}, {1, 2, 8, 2}};
  for (const Case& c : cases) {
    CAPTURE(c.width, c.wanted, c.limit);
    CHECK(better_width(c.width, c.wanted, c.limit) == c.better);
  }
  for (int width = 1; width <= 20; ++width) {
    for (int wanted = 1; wanted <= 50; ++wanted) {
      const std::optional<int> better = better_width(width, wanted, 20);
      if (!better) continue;
      REQUIRE(*better <= 20);
      if (*better < width) REQUIRE(*better >= wanted);  // every trial in it keeps a slot
    }
  }
}

TEST_CASE("a measurement is a value, or the reason of a failure") {
  const double nan = std::nan("");
  struct Case {
    double train_loss, val_loss, val_r2;
    const char* failure;
  };
  const Case cases[] = {{0.5, 0.6, 0.1, ""},
                        {nan, 0.6, 0.1, "train_loss is nan at epoch 4; finite until epoch 3"},
                        {nan, nan, nan, "train_loss is nan at epoch 4; finite until epoch 3"},
                        {0.5, HUGE_VAL, 0.1, "val_loss is inf at epoch 4; finite until epoch 3"},
                        {-HUGE_VAL, 0.6, 0.1, "train_loss is -inf at epoch 4; finite until epoch 3"},
                        {0.5, 0.6, nan, ""}};  // another metric may be undefined
  for (const Case& c : cases) {
    const Measurement m =
        measure({{"train_loss", c.train_loss}, {"val_loss", c.val_loss}, {"val_r2", c.val_r2}}, {{"val_loss"}}, 4);
    CHECK(m.failure == c.failure);
    if (std::isfinite(c.val_loss)) CHECK(m.values == std::vector<double>{c.val_loss});
  }
  CHECK_THROWS_WITH(measure({{"train_loss", 1.0}}, {{"val_loss"}}, 1), Catch::Contains("'val_loss'"));
}

TEST_CASE("workers run side by side, each in its own thread, and tell of their ends one by one") {
  const SystemClock clock;
  const std::unique_ptr<DeviceWorkers> workers = make_threads(3, clock);
  std::vector<std::thread::id> ids(3);
  std::atomic<int> here{0};
  const auto meet = [&](std::size_t i) {
    ids[i] = std::this_thread::get_id();
    ++here;
    while (here.load() < 3) std::this_thread::yield();  // ends only if all three run at once
    if (i == 1) throw std::runtime_error("one");
  };
  std::vector<std::thread::id> before;
  for (int round = 0; round < 2; ++round) {
    here = 0;
    for (std::size_t i = 0; i < 3; ++i) workers->start(i, [&meet, i] { meet(i); });
    std::set<std::size_t> ended;
    for (int i = 0; i < 3; ++i) {
      const DeviceWorkers::Ended end = workers->wait();
      CHECK_FALSE(workers->busy(end.worker));
      CHECK(ended.insert(end.worker).second);
      CHECK((end.error != nullptr) == (end.worker == 1));
      CHECK(end.seconds >= 0);
    }
    if (round == 1) CHECK(ids == before);
    before = ids;
  }
}

TEST_CASE("the only worker is the caller's own thread") {
  const SystemClock clock;
  const std::unique_ptr<DeviceWorkers> alone = make_threads(1, clock);
  std::thread::id id;
  alone->start(0, [&] { id = std::this_thread::get_id(); });
  CHECK(alone->busy(0));
  CHECK(alone->wait().error == nullptr);
  CHECK_FALSE(alone->busy(0));
  CHECK(id == std::this_thread::get_id());
  alone->start(0, [] { throw std::runtime_error("two"); });
  CHECK_THROWS_WITH(std::rethrow_exception(alone->wait().error), "two");
}

TEST_CASE("the rate looks at the last half minute") {
  RateMeter meter;
  CHECK(meter.rate() == 0);
  meter.add(0, 0);
  CHECK(meter.rate() == 0);
  meter.add(10, 100);
  CHECK(meter.rate() == Approx(10));
  for (int s = 11; s <= 100; ++s) meter.add(s, 100 + (s - 10));
  CHECK(meter.rate() == Approx(1));
}

TEST_CASE("a status is one line for logs, and a few that fit for a terminal") {
  Status s;
  s.study = "digits";
  s.objectives.front().metric = "val_accuracy";
  s.round = 12;
  s.planned = 98;
  s.complete = 2;
  s.pruned = 29;
  s.failed = 1;
  s.running = 16;
  s.waiting = 50;
  s.epochs = 300;
  s.epochs_left = 414;
  s.rate = 41.4;
  s.best = BestSoFar{17, 9, 0.9875, {{"lr", 0.0123456}, {"name", std::string("a\x1b[2J")}}};
  s.arrays = {{"cpu", "hidden=64", 16, 15}};
  const std::string line = status_line(s);
  for (const char* part :
       {"round 12", "32/98 done", "2 complete", "29 pruned", "1 failed", "16 running", "50 waiting",
        "val_accuracy 0.9875", "trial 17", "lr=0.01235", "15/16", "hidden=64", "41.4/s", "10.0 s left"}) {
    CHECK_THAT(line, Catch::Contains(part));
  }
  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
  for (const int columns : {10, 40, 80, 500}) {
    for (const std::string& text : status_lines(s, columns)) CHECK(static_cast<int>(text.size()) <= columns);
  }
  CHECK_THAT(status_line(Status{}), Catch::Contains("0 done"));
}
