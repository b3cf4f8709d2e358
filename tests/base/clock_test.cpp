#include "base/clock.hpp"

#include <catch2/catch.hpp>

using namespace hfta;

namespace {

// Clocks that do what a test says.
class Jumping final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return Utc(std::chrono::microseconds(wall)); }
  [[nodiscard]] double seconds() const override { return passed; }
  std::int64_t wall = 1'000'000'000'000'000;
  double passed = 5;
};

}  // namespace

TEST_CASE("a run's times differ by what has passed, whatever the wall clock does") {
  constexpr std::int64_t kDay = 86'400'000'000;
  for (const std::int64_t jump : {-kDay, std::int64_t{0}, 3650 * kDay}) {
    CAPTURE(jump);
    Jumping clock;
    const RunClock run(clock);
    const Clock::Utc began = run.utc();
    CHECK(began == clock.utc());
    clock.wall += jump;
    clock.passed += 1.5;
    CHECK(run.utc() - began == std::chrono::microseconds(1'500'000));
    CHECK(run.seconds() == 6.5);
  }
}
