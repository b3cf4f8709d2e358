// The threads of devices.

#include "engine/driver/devices/device_workers.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.hpp"

using namespace hfta;
using namespace hfta::engine;

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
