// What is measured of devices: epochs with breaks, with lent threads, and arrays that are opened.

#include "engine/driver/devices/device_times.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

using namespace hfta::engine;

namespace {

std::vector<EpochTimes::Device> two_devices() {
  const auto nothing = [](const std::string&, int) { return std::optional<double>(); };
  return {{1, nothing}, {1, nothing}};
}

}  // namespace

TEST_CASE("an epoch's time is the sum of its parts, and counts when it has ended") {
  DeviceTimes times(two_devices());
  CHECK(times.add(0, "a", 4, {3, false, false}) == 3);
  CHECK(times.add(1, "a", 4, {10, false, false}) == 10);  // a device knows nothing of the other
  CHECK(times.add(0, "a", 4, {2, false, false}) == 5);
  CHECK(!times.epochs().seconds(0, "a", 4));
  CHECK(times.add(0, "a", 4, {1, false, true}) == 6);
  CHECK(times.epochs().seconds(0, "a", 4) == Approx(6));
  CHECK(!times.epochs().seconds(1, "a", 4));
  CHECK(times.add(0, "a", 4, {6, false, true}) == 6);  // the next epoch begins at nothing
}

TEST_CASE("the part of an epoch that is lost does not count to the next one") {
  DeviceTimes times(two_devices());
  CHECK(times.add(0, "a", 2, {3, false, false}) == 3);
  times.drop(0);
  CHECK(times.add(0, "a", 2, {4, false, true}) == 4);
  CHECK(times.epochs().seconds(0, "a", 2) == Approx(4));
}

TEST_CASE("tables have epochs with own threads alone; those with lent threads say whether these help") {
  DeviceTimes times(two_devices());
  (void)times.add(0, "a", 2, {4, false, true});
  CHECK(times.lending_helps(0, "a"));  // nothing says that they do not
  for (int epoch = 0; epoch < 5; ++epoch) {
    (void)times.add(0, "a", 2, {1, true, false});
    (void)times.add(0, "a", 2, {7, false, true});  // lent for a part of it: says nothing
  }
  CHECK(times.epochs().seconds(0, "a", 2) == Approx(4));
  CHECK(times.lending_helps(0, "a"));
  for (int epoch = 0; epoch < 5; ++epoch) (void)times.add(0, "a", 2, {8, true, true});
  CHECK(times.epochs().seconds(0, "a", 2) == Approx(4));
  CHECK(!times.lending_helps(0, "a"));
  CHECK(times.lending_helps(1, "a"));
}

TEST_CASE("what opening an array took last is known of each device") {
  DeviceTimes times(two_devices());
  CHECK(times.opening(0) == 0);
  times.opened(0, 9);
  times.opened(0, 2);
  CHECK(times.opening(0) == 2);
  CHECK(times.opening(1) == 0);
}
