// ArrayScheduler: the trials of one partition on several, maybe unequal, devices.

#include <algorithm>
#include <cstdint>

#include "engine/driver/array_scheduler.hpp"
#include "engine/driver/placement.hpp"

namespace hfta::engine {
namespace {

constexpr double kWorth = 11.0 / 12;      // a new division must take at most this part of the time before
constexpr std::size_t kMostDevices = 16;  // most devices that a division is planned over

}  // namespace

// Adds an epoch to the times. Tables have only epochs with the device's own threads.
double ArrayScheduler::timed(std::size_t device, double seconds, bool ended) {
  const OpenArray& array = *arrays_[device];
  EpochPart& part = parts_[device];
  part.seconds += seconds;
  part.lent += array.lent() > 0 ? seconds : 0;
  if (!ended) return part.seconds;
  const EpochPart epoch = std::exchange(part, {});
  if (epoch.lent == 0) {
    times_.add(device, array.partition(), array.occupied(), epoch.seconds);
  } else if (epoch.lent >= epoch.seconds) {  // an epoch that had lent threads for a part only says nothing
    const std::optional<double> alone = times_.seconds(device, array.partition(), array.occupied());
    lent_epochs_.add(device, array.partition(), epoch.seconds, alone.value_or(0));
  }
  return epoch.seconds;
}

// The first change of threads costs no more than opening the array did, as both compile kernels. Opening may have
// included measuring, so an epoch's time is assumed where that is less.
LendingDevice ArrayScheduler::borrower(std::size_t device, double cost) {
  LendingDevice found{facts_[device].threads, facts_[device].cpus};
  const std::unique_ptr<OpenArray>& array = arrays_[device];
  if (!array || array->occupied() == 0 || !array->can_borrow()) return found;
  found.lent = array->lent();
  const std::optional<double> epoch = times_.seconds(device, array->partition(), array->occupied());
  if (!epoch || !lent_epochs_.help(device, array->partition())) return found;
  found.cost = cost > 0 ? cost : std::min(opening_seconds_[device], *epoch);
  found.seconds = *epoch * epochs_to_do(*array);
  return found;
}

int ArrayScheduler::epochs_to_do(const OpenArray& array) {
  int epochs = 0;
  for (const int draw : array.draws()) epochs = std::max(epochs, table_.epochs_to_target(draw));
  return epochs;
}

// The devices that have an array of the partition, the device itself, and the partition's part of the idle ones.
std::vector<std::size_t> ArrayScheduler::devices_for(std::size_t device, const std::string& partition) const {
  std::vector<std::size_t> those = {device}, idle;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (i == device || trainers_[i] == nullptr) continue;
    if (arrays_[i] == nullptr) {
      idle.push_back(i);
    } else if (arrays_[i]->partition() == partition && arrays_[i]->occupied() > 0) {
      those.push_back(i);
    }
  }
  std::size_t taken = idle.size();
  if (queue_.ready() > 0) {
    const int parts = queue_.ready(partition) > 0 ? parts_for(partition) : 0;
    taken = std::min(taken, static_cast<std::size_t>(std::max(0, arrays_[device] == nullptr ? parts - 1 : parts)));
  }
  those.insert(those.end(), idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(taken));
  those.resize(std::min(those.size(), kMostDevices));
  std::sort(those.begin(), those.end());
  return those;
}

// nullopt: there is nothing to divide, because no other device takes part, or because there are trials for all slots.
std::optional<ArrayScheduler::Sharing> ArrayScheduler::sharing(std::size_t device, const std::string& partition,
                                                               int draw) {
  if (table_.can_draw()) return std::nullopt;
  Sharing all;
  all.devices = devices_for(device, partition);
  if (all.devices.size() < 2) return std::nullopt;
  int slots = queue_.ready(partition);
  std::int64_t room = 0;
  for (const std::size_t i : all.devices) {
    all.rooms.push_back(limit(i, partition, draw));
    all.occupied.push_back(arrays_[i] ? arrays_[i]->occupied() : 0);
    slots += all.occupied.back();
    room += all.rooms.back();
  }
  if (slots >= room) return std::nullopt;
  for (int& most : all.rooms) most = std::min(most, slots);
  all.times = times_.tables(partition, all.devices, all.rooms);
  std::optional<std::vector<int>> division = split_slots(slots, all.times);
  if (!division) return std::nullopt;
  all.division = std::move(*division);
  return all;
}

int ArrayScheduler::Sharing::share_of(std::size_t device) const {
  const auto place = std::find(devices.begin(), devices.end(), device);
  return division[static_cast<std::size_t>(place - devices.begin())];
}

// The slots that the device is to have; nullopt: as many as it can. A device that would only be waited for gets none,
// unless nobody does anything: of idle devices that leave all to one another, one has to begin.
std::optional<int> ArrayScheduler::share_of(std::size_t device, const std::string& partition, int draw) {
  const std::optional<Sharing> all = sharing(device, partition, draw);
  if (!all) return std::nullopt;
  const int share = all->share_of(device);
  const bool at_work = std::any_of(arrays_.begin(), arrays_.end(),
                                   [](const auto& array) { return array != nullptr && array->occupied() > 0; });
  return share > 0 || at_work ? std::optional(share) : std::nullopt;
}

bool ArrayScheduler::takes_part(std::size_t device, const std::string& partition) {
  return share_of(device, partition, queue_.front(partition)).value_or(1) > 0;
}

void ArrayScheduler::share(std::size_t device) {
  const std::unique_ptr<OpenArray>& array = arrays_[device];
  if (!array || array->occupied() == 0 || !options_.refill || queue_.ready(array->partition()) > 0) return;
  const std::optional<Sharing> all = sharing(device, array->partition(), array->some_draw());
  if (!all || !worth_moving(*all, *array)) return;
  const int kept = all->share_of(device);
  if (kept < array->occupied()) give_up(device, array->occupied() - kept);
}

// Whether the time gained until the trials' next decisions is more than the cost of arrays that have to be opened.
bool ArrayScheduler::worth_moving(const Sharing& all, const OpenArray& array) {
  const double before = longest(all.occupied, all.times), after = longest(all.division, all.times);
  if (after > kWorth * before) return false;
  double cost = 0;
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    if (all.occupied[i] == 0 && all.division[i] > 0) cost = std::max(cost, opening_seconds_[all.devices[i]]);
  }
  return (before - after) * epochs_to_do(array) >= cost;
}

// Gives up the trials that have most to do, as they gain most; of equals, the latest.
void ArrayScheduler::give_up(std::size_t device, int count) {
  OpenArray& array = *arrays_[device];
  if (count == array.occupied()) return leave(device);
  std::vector<std::pair<int, int>> trials;  // (epochs to do, draw)
  for (const int draw : array.draws()) trials.emplace_back(table_.epochs_to_target(draw), draw);
  std::sort(trials.rbegin(), trials.rend());
  trials.resize(static_cast<std::size_t>(count));
  for (const auto& [epochs, draw] : trials) put_back(array, draw);
  array.resize(array.occupied(), table_);
}

}  // namespace hfta::engine
