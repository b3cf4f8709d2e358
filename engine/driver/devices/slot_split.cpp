#include "engine/driver/devices/slot_split.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hfta::engine {
namespace {

double time_of(const SlotTimes& table, std::size_t slots) { return slots == 0 ? 0 : table[slots]; }

/// A set of numbers from 0 to a largest one.
class NumberSet {
 public:
  explicit NumberSet(int largest) : largest_(largest), words_(static_cast<std::size_t>(largest) / 64 + 1) {}

  [[nodiscard]] bool has(int number) const {
    return number >= 0 && number <= largest_ && (words_[index(number)] >> (number % 64) & 1U) != 0;
  }
  void add(int number) { words_[index(number)] |= std::uint64_t{1} << (number % 64); }
  /// Adds every number of `other` plus `shift`; what is larger than the largest number is dropped.
  void add_shifted(const NumberSet& other, std::size_t shift) {
    const std::size_t words = shift / 64, bits = shift % 64;
    for (std::size_t i = words_.size(); i-- > words;) {
      words_[i] |= other.words_[i - words] << bits;
      if (bits > 0 && i > words) words_[i] |= other.words_[i - words - 1] >> (64 - bits);
    }
  }

 private:
  [[nodiscard]] static std::size_t index(int number) { return static_cast<std::size_t>(number) / 64; }

  int largest_;
  std::vector<std::uint64_t> words_;
};

// Element d: the numbers of slots that the devices from d on can have within `longest`. Times may be in any order, so
// these numbers need not be all up to some largest one.
std::vector<NumberSet> reachable(int slots, const std::vector<SlotTimes>& devices, double longest) {
  std::vector<NumberSet> sets(devices.size() + 1, NumberSet(slots));
  sets.back().add(0);
  for (std::size_t d = devices.size(); d-- > 0;) {
    const std::size_t most = std::min(devices[d].size(), static_cast<std::size_t>(slots) + 1);
    for (std::size_t b = 0; b < std::max<std::size_t>(most, 1); ++b) {
      if (time_of(devices[d], b) <= longest) sets[d].add_shifted(sets[d + 1], b);
    }
  }
  return sets;
}

std::vector<double> finite_times(const std::vector<SlotTimes>& devices) {
  std::vector<double> times = {0};
  for (const SlotTimes& table : devices) {
    for (std::size_t b = 1; b < table.size(); ++b) {
      if (std::isfinite(table[b])) times.push_back(table[b]);
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace

std::optional<std::vector<int>> split_slots(int slots, const std::vector<SlotTimes>& devices) {
  const std::vector<double> times = finite_times(devices);
  // A longer time allows all that a shorter one does, so that the shortest is found by bisection.
  const auto shortest = std::partition_point(times.begin(), times.end(), [&](double longest) {
    return !reachable(slots, devices, longest).front().has(slots);
  });
  if (shortest == times.end()) return std::nullopt;
  const std::vector<NumberSet> sets = reachable(slots, devices, *shortest);
  std::vector<int> division;
  int left = slots;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    int b = std::min(left, std::max(0, static_cast<int>(devices[d].size()) - 1));
    while (!(time_of(devices[d], static_cast<std::size_t>(b)) <= *shortest && sets[d + 1].has(left - b))) --b;
    division.push_back(b);
    left -= b;
  }
  return division;
}

double longest(const std::vector<int>& division, const std::vector<SlotTimes>& devices) {
  double time = 0;
  for (std::size_t d = 0; d < division.size(); ++d) {
    time = std::max(time, time_of(devices[d], static_cast<std::size_t>(division[d])));
  }
  return time;
}

}  // namespace hfta::engine
