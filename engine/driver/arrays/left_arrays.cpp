#include "engine/driver/arrays/left_arrays.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace hfta::engine {
namespace {

/// A device's newest array, before it is known which of this run's devices goes on with it.
struct Newest {
  std::string label;
  int last_round = 0;
  LeftArray array;
};

class Seats {
 public:
  explicit Seats(const std::vector<std::string>& labels) : labels_(labels), taken_(labels.size()) {}

  /// The free device of that label.
  [[nodiscard]] std::optional<std::size_t> own(const std::string& label) const {
    const auto found = std::find(labels_.begin(), labels_.end(), label);
    const auto device = static_cast<std::size_t>(found - labels_.begin());
    return found == labels_.end() || taken_[device] ? std::nullopt : std::optional(device);
  }
  /// A free device, if possible one that none of these arrays was on.
  [[nodiscard]] std::optional<std::size_t> any(const std::vector<Newest>& arrays) const {
    std::optional<std::size_t> found;
    for (std::size_t i = labels_.size(); i-- > 0;) {
      if (taken_[i]) continue;
      const bool is_strange =
          std::none_of(arrays.begin(), arrays.end(), [&](const Newest& newest) { return newest.label == labels_[i]; });
      if (!found || is_strange) found = i;
    }
    return found;
  }
  void take(std::size_t device) { taken_[device] = true; }

 private:
  const std::vector<std::string>& labels_;
  std::vector<bool> taken_;
};

// Gives devices to arrays. An array whose trials have all continued elsewhere, in a run on other devices, must not keep
// a device from one that has trials.
std::vector<LeftArray> seated(std::vector<Newest> arrays, const std::vector<std::string>& labels) {
  std::sort(arrays.begin(), arrays.end(), [](const Newest& a, const Newest& b) {
    return std::tuple(a.array.trials.empty(), -a.last_round, a.array.id) <
           std::tuple(b.array.trials.empty(), -b.last_round, b.array.id);
  });
  Seats seats(labels);
  std::map<std::size_t, LeftArray> by_device;
  for (const bool at_home : {true, false}) {
    for (Newest& newest : arrays) {
      if (newest.array.width == 0 || (at_home && newest.array.trials.empty())) continue;
      std::optional<std::size_t> device = seats.own(newest.label);
      if (!device && !at_home) device = seats.any(arrays);
      if (!device) continue;
      seats.take(*device);
      newest.array.device = *device;
      by_device[*device] = std::exchange(newest.array, {});
    }
  }
  std::vector<LeftArray> all;
  for (auto& [device, array] : by_device) all.push_back(std::move(array));
  return all;
}

}  // namespace

std::vector<LeftArray> arrays_left(storage::Store& store, const std::string& study, const TrialTable& table,
                                   const std::vector<std::string>& labels) {
  std::map<int, int> draw_of;  // by number
  for (int draw = 0; draw < table.drawn(); ++draw) {
    draw_of[table.trials().at(static_cast<std::size_t>(draw)).number] = draw;
  }
  std::map<int, LeftArray> by_id;
  std::map<int, int> last_round;  // by array
  for (const storage::RoundRecord& round : store.rounds(study)) {
    last_round[round.array] = round.round;
    by_id[round.array] = {round.array, 0, {}, round.width, {}};
  }
  std::map<int, storage::OccupancyRecord> latest;  // by draw; places come in order of round
  for (const storage::OccupancyRecord& place : store.occupancy(study)) {
    const auto draw = draw_of.find(place.trial);
    if (draw != draw_of.end()) latest[draw->second] = place;
  }
  for (const auto& [draw, place] : latest) {
    const bool here = place.round == last_round[place.array] && place.epoch == table.recorded(draw);
    if (here) by_id[place.array].trials.emplace_back(place.slot, draw);
  }
  std::map<std::string, Newest> by_label;
  for (const storage::ArrayRecord& array : store.arrays(study)) {
    const auto found = by_id.find(array.array);
    if (found == by_id.end()) continue;
    found->second.partition = array.partition;
    Newest& newest = by_label[array.device];
    const int last = last_round[array.array];
    if (newest.array.width == 0 || newest.last_round < last) newest = {array.device, last, found->second};
  }
  std::vector<Newest> arrays;
  for (auto& [label, newest] : by_label) arrays.push_back(std::move(newest));
  return seated(std::move(arrays), labels);
}

}  // namespace hfta::engine
