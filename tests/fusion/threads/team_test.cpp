#include "fusion/threads/team.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "fusion/simd/denormals.hpp"

namespace hfta::fusion {
namespace {

// How often each stretch ran.
std::vector<int> runs_of(Team* team, std::int64_t n) {
  std::vector<int> runs(static_cast<std::size_t>(n), 0);  // no two threads write one: ThreadSanitizer would see it
  share(team, n, [&](std::int64_t stretch, int) { ++runs[static_cast<std::size_t>(stretch)]; });
  return runs;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TEST_CASE("every stretch runs once, whatever the team") {
  const int threads = GENERATE(1, 2, 3, 7);
  Team team(threads);
  CHECK(team.threads() == threads);
  for (const std::int64_t n : {0, 1, 2, 3, 100, 65535, 65536, 200000}) {
    CHECK(runs_of(&team, n) == std::vector<int>(static_cast<std::size_t>(n), 1));
  }
}

TEST_CASE("without a team the caller does all the work, in order") {
  std::vector<std::int64_t> order;
  share(nullptr, 4, [&](std::int64_t stretch, int thread) {
    CHECK(thread == 0);
    order.push_back(stretch);
  });
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("threads have numbers of their own, and what work writes is there when it is done") {
  constexpr int kThreads = 4;
  Team team(kThreads);
  std::array<std::int64_t, kThreads> sums = {};  // scratch memory of each thread
  std::vector<std::int64_t> squares(64);
  for (int round = 0; round < 3000; ++round) {
    sums.fill(0);
    share(&team, 64, [&](std::int64_t stretch, int thread) {
      sums[static_cast<std::size_t>(thread)] += stretch;
      squares[static_cast<std::size_t>(stretch)] = stretch * stretch + round;
    });
    std::int64_t total = 0;
    for (const std::int64_t sum : sums) total += sum;
    REQUIRE(total == 64 * 63 / 2);
    REQUIRE(squares.front() == round);
    REQUIRE(squares.back() == 63 * 63 + round);
  }
}

TEST_CASE("helpers that sleep are woken") {
  Team team(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> met = 0;  // two stretches that wait for each other need two threads
    share(&team, 2, [&](std::int64_t, int) {
      ++met;
      while (met < 2) std::this_thread::yield();
    });
    CHECK(met == 2);
  }
}

TEST_CASE("an idle team takes no processor time") {
  Team team(3);
  static_cast<void>(runs_of(&team, 10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(cpu_seconds() - before < 0.05);
}

TEST_CASE("the lowest stretch's exception is rethrown when all are done") {
  const int threads = GENERATE(1, 2, 3);
  Team team(threads);
  std::atomic<int> done = 0;
  const auto failing = [&](std::int64_t stretch, int) {
    ++done;
    if (stretch % 10 == 7) throw std::runtime_error("stretch " + std::to_string(stretch));
  };
  CHECK_THROWS_WITH(team.share(100, failing), "stretch 7");
  CHECK(done == 100);
  CHECK(runs_of(&team, 50) == std::vector<int>(50, 1));
}

TEST_CASE("work that shares work is refused") {
  const int threads = GENERATE(1, 2);
  Team team(threads);
  const auto nested = [&](std::int64_t, int) { share(&team, 2, [](std::int64_t, int) {}); };
  try {
    share(&team, 4, nested);
    FAIL("it was not refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInternal);
  }
  CHECK(runs_of(&team, 50) == std::vector<int>(50, 1));
}

TEST_CASE("helpers treat denormal numbers as the caller does") {
#if defined(__SSE2__)
  Team team(2);
  // As bits: to a thread that flushes denormal numbers they are equal to zero.
  const auto halves_of_the_least = [&] {
    std::array<std::uint32_t, 2> halves = {1, 1};
    std::atomic<int> met = 0;
    share(&team, 2, [&](std::int64_t, int thread) {
      ++met;
      while (met < 2) std::this_thread::yield();
      volatile float least = std::numeric_limits<float>::min();
      least = least / 2;
      halves[static_cast<std::size_t>(thread)] = std::bit_cast<std::uint32_t>(float{least});
    });
    return std::array<bool, 2>{halves[0] == 0, halves[1] == 0};
  };
  CHECK(halves_of_the_least() == std::array<bool, 2>{false, false});
  {
    const simd::FlushDenormals flush;
    CHECK(halves_of_the_least() == std::array<bool, 2>{true, true});
  }
  CHECK(halves_of_the_least() == std::array<bool, 2>{false, false});
#endif
}

TEST_CASE("stretches cover a range and are whole multiples of a unit") {
  for (const std::int64_t items : {0, 1, 15, 16, 17, 1000, 16384, 16385, 100000}) {
    for (const std::int64_t unit : {1, 16}) {
      const Stretches stretches = stretches_of(items, 100, unit);
      CHECK(stretches.length % unit == 0);
      CHECK(stretches.length * 100 >= kStretchElements);
      std::int64_t next = 0;
      for (std::int64_t s = 0; s < stretches.count(); ++s) {
        CHECK(stretches.begin(s) == next);
        CHECK(stretches.size(s) > 0);
        next += stretches.size(s);
      }
      CHECK(next == items);
    }
  }
}

}  // namespace hfta::fusion
