#include "engine/driver/devices/epoch_times.hpp"

#include <cmath>

namespace hfta::engine {
namespace {

constexpr double kNewest = 0.5;  // weight of the newest epoch

}  // namespace

// An array's first epoch may include work that is done once: the second one replaces it. An epoch that took no time by
// a coarse clock says nothing.
void EpochTimes::add(std::size_t device, const std::string& partition, int slots, double seconds) {
  const double factor = seconds / shape(device, partition, slots);
  if (!std::isfinite(factor) || factor <= 0) return;
  Scale& scale = measured_.at(device)[partition];
  scale.factor = scale.epochs < 2 ? factor : (1 - kNewest) * scale.factor + kNewest * factor;
  ++scale.epochs;
}

std::optional<double> EpochTimes::seconds(std::size_t device, const std::string& partition, int slots) const {
  const std::optional<Scale> own = scale_of(device, partition);
  return own ? std::optional(own->factor * shape(device, partition, slots)) : std::nullopt;
}

std::vector<SlotTimes> EpochTimes::tables(const std::string& partition, const std::vector<std::size_t>& devices,
                                          const std::vector<int>& rooms) const {
  std::optional<std::size_t> known;  // the device that others are compared with
  for (const std::size_t device : devices) {
    if (!known && scale_of(device, partition)) known = device;
  }
  const bool measured = known.has_value();
  for (const std::size_t device : devices) {
    if (!known && predicts(device, partition)) known = device;
  }
  const double usual = measured ? scale_of(*known, partition)->factor : 1;
  std::vector<SlotTimes> tables;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t device = devices[i];
    const std::optional<Scale> own = scale_of(device, partition);
    const bool borrows = known && !own && !predicts(device, partition);
    const std::size_t source = borrows ? *known : device;
    const double scale = own ? own->factor : borrows ? usual * slower_than(*known, device) : usual;
    SlotTimes times = {0};
    for (int b = 1; b <= rooms[i]; ++b) times.push_back(scale * shape(source, partition, b));
    tables.push_back(std::move(times));
  }
  return tables;
}

std::optional<EpochTimes::Scale> EpochTimes::scale_of(std::size_t device, const std::string& partition) const {
  const auto found = measured_.at(device).find(partition);
  return found == measured_.at(device).end() ? std::nullopt : std::optional(found->second);
}

double EpochTimes::shape(std::size_t device, const std::string& partition, int slots) const {
  const Device& one = devices_.at(device);
  const std::optional<double> predicted = one.step_seconds(partition, slots);
  return predicted ? *predicted : slots / one.speed;
}

bool EpochTimes::predicts(std::size_t device, const std::string& partition) const {
  return devices_.at(device).step_seconds(partition, 1).has_value();
}

double EpochTimes::slower_than(std::size_t other, std::size_t device) const {
  for (const auto& [partition, scale] : measured_.at(device)) {
    const std::optional<Scale> beside = scale_of(other, partition);
    if (!beside) continue;
    return scale.factor * shape(device, partition, 1) / (beside->factor * shape(other, partition, 1));
  }
  return devices_.at(other).speed / devices_.at(device).speed;
}

}  // namespace hfta::engine
