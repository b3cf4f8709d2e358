#include "engine/driver/devices/lending.hpp"

#include <algorithm>

namespace hfta::engine {
namespace {

// A loan must save so many times what changing the number of threads costs: the array changes back later, and a team
// speeds up by less than its size.
constexpr double kWorth = 4;
constexpr int kTries = 2;         // epochs with lent threads; the first one touches new memory
constexpr double kFaster = 0.95;  // the largest part of the time alone that one of them may take

bool are_neighbours(const LendingDevice& a, const LendingDevice& b) { return a.cpus == b.cpus; }

int idle_threads(const std::vector<LendingDevice>& devices, const LendingDevice& beside) {
  int count = 0;
  for (const LendingDevice& device : devices)
    count += device.idle && are_neighbours(device, beside) ? device.threads : 0;
  return count;
}

double seconds_with(const LendingDevice& device, int lent) {
  return device.seconds * device.threads / (device.threads + lent);
}

bool is_worthwhile(const LendingDevice& device, int lent) {
  return device.seconds - seconds_with(device, lent) >= kWorth * device.cost;
}

// The last to end of the devices that gain by a further thread, among `one` and those beside it. Null: none does.
const LendingDevice* last_to_end(const std::vector<LendingDevice>& devices, const LendingDevice& one, int idle,
                                 const std::vector<int>& lent) {
  const LendingDevice* last = nullptr;
  double longest = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const LendingDevice& device = devices[i];
    if (!are_neighbours(device, one) || device.idle || device.seconds <= 0 || device.threads <= 0) continue;
    if (lent[i] == 0 && !is_worthwhile(device, idle)) continue;
    const double left = seconds_with(device, lent[i]);
    if (left <= longest) continue;
    longest = left;
    last = &device;
  }
  return last;
}

}  // namespace

std::vector<int> lent_threads(const std::vector<LendingDevice>& devices) {
  std::vector<int> lent(devices.size(), 0);
  for (std::size_t first = 0; first < devices.size(); ++first) {
    const LendingDevice& one = devices[first];
    const auto beside = [&](const LendingDevice& other) { return are_neighbours(other, one); };
    if (std::any_of(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(first), beside)) continue;
    const int idle = idle_threads(devices, one);
    int left = idle;
    for (std::size_t i = first; i < devices.size(); ++i) {
      if (!beside(devices[i]) || devices[i].seconds <= 0) continue;
      lent[i] = std::min(devices[i].lent, left);
      left -= lent[i];
    }
    for (; left > 0; --left) {
      const LendingDevice* last = last_to_end(devices, one, idle, lent);
      if (last == nullptr) break;
      ++lent[static_cast<std::size_t>(last - devices.data())];
    }
  }
  return lent;
}

void LentEpochs::add(std::size_t device, const std::string& partition, double seconds, double alone) {
  if (!(alone > 0)) return;
  Seen& seen = seen_[{device, partition}];
  const double part = seconds / alone;
  seen.best = seen.epochs == 0 ? part : std::min(seen.best, part);
  ++seen.epochs;
}

bool LentEpochs::help(std::size_t device, const std::string& partition) const {
  const auto found = seen_.find({device, partition});
  return found == seen_.end() || found->second.epochs < kTries || found->second.best <= kFaster;
}

}  // namespace hfta::engine
