// The speed of a run, and its status as text.

#include "engine/driver/progress.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace hfta;
using namespace hfta::engine;

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
