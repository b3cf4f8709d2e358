#include "engine/driver/packing/partition_choice.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/driver/packing/draw_rules.hpp"
#include "engine/driver/packing/placement.hpp"

namespace hfta::engine {
namespace {

// A waiting trial comes first once the trials that were drawn after it could have filled all slots so many times.
constexpr int kLaps = 8;

// The number of trials for which a device leaves an array that has `trials` of them in `width` slots.
int clearly_fuller(int trials, int width) { return trials + std::max(1, (width + 2) / 3); }

}  // namespace

// The candidates are the partitions that have an array and the richest one without an array.
std::string PartitionChoice::choose(std::size_t device) const {
  if (auto partition = overtaken()) return *std::move(partition);
  std::map<std::string, double> speeds;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::unique_ptr<OpenArray>& array = devices_.array(i);
    if (array && queue_.ready(array->partition()) > 0) speeds[array->partition()] += devices_.facts(i).speed;
  }
  for (const std::string& partition : queue_.richest(speeds.size() + 1)) speeds.try_emplace(partition, 0);
  std::vector<WaitingPartition> waiting;
  waiting.reserve(speeds.size());
  for (const auto& [partition, speed] : speeds) waiting.push_back({partition, queue_.work(partition), speed});
  return partition_for(waiting, devices_.facts(device).speed).name;
}

bool PartitionChoice::keeps_busy(std::size_t device, int slots) const {
  const std::optional<int>& busy_slots = devices_.facts(device).busy_slots;
  return busy_slots && slots >= *busy_slots;
}

bool PartitionChoice::is_for_another(std::size_t device) const {
  const OpenArray& array = *devices_.array(device);
  return draws_join(table_) && array.occupied() == 0 && queue_.ready() > 0 && choose(device) != array.partition();
}

std::optional<int> PartitionChoice::comes_first(std::size_t device) {
  const OpenArray& array = *devices_.array(device);
  const std::optional<std::string> other = array.occupied() < array.width() ? overtaken() : std::nullopt;
  const bool later = other && *other != array.partition() && queue_.earliest() < std::ranges::min(array.draws());
  if (later) return queue_.earliest();
  const std::optional<std::string> fuller = fuller_elsewhere(device);
  return fuller ? std::optional(queue_.front(*fuller)) : std::nullopt;
}

// The number of draws before the last round ended: a run that was killed between two draws continues with the second,
// and must not decide otherwise for it.
int PartitionChoice::drawn_before_round() const {
  int drawn = table_.drawn();
  while (drawn > 0 && table_.trial(drawn - 1).seen_rounds.value_or(0) >= rounds_) --drawn;
  return drawn;
}

// The richest other partition, ties to the first name, if an array of it would be full, or clearly fuller where no
// draws fill this one, or where draws fill the other one as well; and if the array and what waits in its own partition
// leave the device time to spare. Trials that wait come before draws, which see the more results the later they are.
std::optional<std::string> PartitionChoice::fuller_elsewhere(std::size_t device) {
  if (!table_.learns()) return std::nullopt;  // see worth_leaving()
  const OpenArray& array = *devices_.array(device);
  const int drawn = drawn_before_round(), width = limits_.limit(device, array.partition(), array.some_draw());
  const int own = array.occupied() + queue_.before(drawn, array.partition()).trials;
  if (own >= width || keeps_busy(device, own)) return std::nullopt;
  std::optional<std::string> richest;
  ReadyQueue::Waiting most;
  // Partitions of trials drawn since may be richer: at most one for each.
  for (std::string& partition : queue_.richest(static_cast<std::size_t>(table_.drawn() - drawn) + 2)) {
    const ReadyQueue::Waiting waiting = queue_.before(drawn, partition);
    const bool richer =
        waiting.epochs > most.epochs || (waiting.epochs == most.epochs && richest && partition < *richest);
    if (partition == array.partition() || !richer) continue;
    most = waiting;
    richest = std::move(partition);
  }
  const bool can_draw = queue_.ready_before(drawn) < width - array.occupied() + widths_ahead(table_) * width;
  return most.trials >= (can_draw && !draws_join(table_) ? width : clearly_fuller(own, width)) ? richest : std::nullopt;
}

// The partition of the earliest draw that is ready, if so many trials were drawn since that those in slots and those
// that are ready could have begun kLaps times. Where empty slots are drawn for without end, a device may never leave
// its array for such a trial by itself, and a rule that compares trials in the order of their draws would keep all
// later ones waiting for it.
std::optional<std::string> PartitionChoice::overtaken() const {
  if (!table_.learns() || queue_.ready() == 0) return std::nullopt;
  const int drawn = drawn_before_round();
  int open = queue_.ready_before(drawn);
  for (const auto& array : devices_.all()) {
    if (!array) continue;
    const std::vector<int> draws = array->draws();
    open += static_cast<int>(std::count_if(draws.begin(), draws.end(), [&](int draw) { return draw < drawn; }));
  }
  if (drawn - queue_.earliest() <= kLaps * open) return std::nullopt;
  return table_.entry(queue_.earliest()).partition;
}

// A device leaves an array that cannot be filled for a clearly fuller one if more trials of the array's partition will
// come later: trials that wait for verdicts, or that are still to be drawn. States move bit for bit, so this affects
// only time: moving must not cost more than the empty slots do.
bool PartitionChoice::worth_leaving(std::size_t device) const {
  const OpenArray& array = *devices_.array(device);
  if (table_.learns()) return false;  // its empty slots are drawn for; see fuller_elsewhere()
  if (queue_.ready(array.partition()) > 0) return false;
  if (table_.paused(array.partition()) == 0 && !table_.can_draw()) return false;
  return std::min(queue_.most_ready(), limits_.widest()) >= clearly_fuller(array.occupied(), array.width());
}

}  // namespace hfta::engine
