#include "engine/driver/devices/device_times.hpp"

#include <optional>
#include <utility>

namespace hfta::engine {

std::vector<EpochTimes::Device> timed_devices(const std::vector<Trainer*>& trainers) {
  std::vector<EpochTimes::Device> devices;
  devices.reserve(trainers.size());
  for (const Trainer* trainer : trainers) {
    devices.push_back({trainer->device_facts().speed, [trainer](const std::string& partition, int slots) {
                         return trainer->step_seconds(partition, slots);
                       }});
  }
  return devices;
}

DeviceTimes::DeviceTimes(std::vector<EpochTimes::Device> devices)
    : at_hand_(devices.size()), opening_(devices.size()), epochs_(std::move(devices)) {}

// Tables have only epochs with the device's own threads.
double DeviceTimes::add(std::size_t device, const std::string& partition, int slots, const Part& part) {
  EpochPart& at_hand = at_hand_[device];
  at_hand.seconds += part.seconds;
  at_hand.lent += part.lent ? part.seconds : 0;
  if (!part.ended) return at_hand.seconds;
  const EpochPart epoch = std::exchange(at_hand, {});
  if (epoch.lent == 0) {
    epochs_.add(device, partition, slots, epoch.seconds);
  } else if (epoch.lent >= epoch.seconds) {  // an epoch that had lent threads for a part only says nothing
    const std::optional<double> alone = epochs_.seconds(device, partition, slots);
    lent_epochs_.add(device, partition, epoch.seconds, alone.value_or(0));
  }
  return epoch.seconds;
}

}  // namespace hfta::engine
