#include "engine/driver/packing/sharing.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/driver/packing/placement.hpp"

namespace hfta::engine {
namespace {

constexpr double kWorth = 11.0 / 12;      // a new division must take at most this part of the time before
constexpr std::size_t kMostDevices = 16;  // most devices that a division is planned over

}  // namespace

int Sharing::epochs_to_do(const OpenArray& array) const {
  int epochs = 0;
  for (const int draw : array.draws()) epochs = std::max(epochs, table_.epochs_to_target(draw));
  return epochs;
}

int Sharing::parts_for(const std::string& partition) const {
  return parts_of(queue_.work(partition), queue_.work(), devices_.idle());
}

// The devices that have an array of the partition, the device itself, and the partition's part of the idle ones.
std::vector<std::size_t> Sharing::devices_for(std::size_t device, const std::string& partition) const {
  std::vector<std::size_t> those = {device}, idle;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (i == device || devices_.retired(i)) continue;
    const std::unique_ptr<OpenArray>& array = devices_.array(i);
    if (array == nullptr) {
      idle.push_back(i);
    } else if (array->partition() == partition && array->occupied() > 0) {
      those.push_back(i);
    }
  }
  std::size_t taken = idle.size();
  if (queue_.ready() > 0) {
    const int parts = queue_.ready(partition) > 0 ? parts_for(partition) : 0;
    taken =
        std::min(taken, static_cast<std::size_t>(std::max(0, devices_.array(device) == nullptr ? parts - 1 : parts)));
  }
  those.insert(those.end(), idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(taken));
  those.resize(std::min(those.size(), kMostDevices));
  std::sort(those.begin(), those.end());
  return those;
}

// nullopt: there is nothing to divide, because no other device takes part, or because there are trials for all slots.
std::optional<Sharing::Division> Sharing::division(std::size_t device, const std::string& partition, int draw) {
  if (table_.can_draw()) return std::nullopt;
  Division all;
  all.devices = devices_for(device, partition);
  if (all.devices.size() < 2) return std::nullopt;
  int slots = queue_.ready(partition);
  std::int64_t room = 0;
  for (const std::size_t i : all.devices) {
    all.rooms.push_back(limits_.limit(i, partition, draw));
    all.occupied.push_back(devices_.array(i) ? devices_.array(i)->occupied() : 0);
    slots += all.occupied.back();
    room += all.rooms.back();
  }
  if (slots >= room) return std::nullopt;
  for (int& most : all.rooms) most = std::min(most, slots);
  all.times = times_.epochs().tables(partition, all.devices, all.rooms);
  std::optional<std::vector<int>> division = split_slots(slots, all.times);
  if (!division) return std::nullopt;
  all.slots = std::move(*division);
  return all;
}

int Sharing::Division::share_of(std::size_t device) const {
  const auto place = std::find(devices.begin(), devices.end(), device);
  return slots[static_cast<std::size_t>(place - devices.begin())];
}

std::optional<int> Sharing::share_of(std::size_t device, const std::string& partition, int draw) {
  const std::optional<Division> all = division(device, partition, draw);
  if (!all) return std::nullopt;
  const int share = all->share_of(device);
  return share > 0 || devices_.any_at_work() ? std::optional(share) : std::nullopt;
}

bool Sharing::takes_part(std::size_t device, const std::string& partition) {
  return share_of(device, partition, queue_.front(partition)).value_or(1) > 0;
}

int Sharing::surplus(std::size_t device) {
  const OpenArray& array = *devices_.array(device);
  const std::optional<Division> all = division(device, array.partition(), array.some_draw());
  if (!all || !worth_moving(*all, array)) return 0;
  return std::max(0, array.occupied() - all->share_of(device));
}

// Whether the time gained until the trials' next decisions is more than the cost of arrays that have to be opened.
bool Sharing::worth_moving(const Division& all, const OpenArray& array) const {
  const double before = longest(all.occupied, all.times), after = longest(all.slots, all.times);
  if (after > kWorth * before) return false;
  double cost = 0;
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    if (all.occupied[i] == 0 && all.slots[i] > 0) cost = std::max(cost, times_.opening(all.devices[i]));
  }
  return (before - after) * epochs_to_do(array) >= cost;
}

}  // namespace hfta::engine
