// ArrayScheduler: when a device leaves its array for another partition.

#include <algorithm>

#include "engine/driver/array_scheduler.hpp"

namespace hfta::engine {
namespace {

// A waiting trial comes first once the trials that were drawn after it could have filled all slots so many times.
constexpr int kLaps = 8;

// The number of trials for which a device leaves an array that has `trials` of them in `width` slots.
int clearly_fuller(int trials, int width) { return trials + std::max(1, (width + 2) / 3); }

}  // namespace

// Whether so many slots keep the device busy, so that further ones would gain nothing.
bool ArrayScheduler::keeps_busy(std::size_t device, int slots) const {
  return facts_[device].busy_slots && slots >= *facts_[device].busy_slots;
}

// Leaves an array that is not full for trials that wait for another one.
void ArrayScheduler::give_way(std::size_t device) {
  const OpenArray& array = *arrays_[device];
  const std::optional<std::string> other = array.occupied() < array.width() ? overtaken() : std::nullopt;
  const bool later = other && *other != array.partition() && queue_.earliest() < std::ranges::min(array.draws());
  const std::optional<std::string> fuller = later ? std::nullopt : fuller_elsewhere(device);
  if (!later && !fuller) return;
  if (calls_.enter(later ? queue_.earliest() : queue_.front(*fuller))) leave(device);
}

// The number of draws before the last round ended: a run that was killed between two draws continues with the second,
// and must not decide otherwise for it.
int ArrayScheduler::drawn_before_round() const {
  int drawn = table_.drawn();
  while (drawn > 0 && table_.trial(drawn - 1).seen_rounds.value_or(0) >= rounds_) --drawn;
  return drawn;
}

// The richest other partition, ties to the first name, if an array of it would be full, or clearly fuller where no
// draws fill this one, or where draws fill the other one as well; and if the array and what waits in its own partition
// leave the device time to spare. Trials that wait come before draws, which see the more results the later they are.
std::optional<std::string> ArrayScheduler::fuller_elsewhere(std::size_t device) {
  if (!table_.learns()) return std::nullopt;  // see worth_leaving()
  const OpenArray& array = *arrays_[device];
  const int drawn = drawn_before_round(), width = limit(device, array.partition(), array.some_draw());
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
  const bool can_draw = queue_.ready_before(drawn) < width - array.occupied() + ahead() * width;
  return most.trials >= (can_draw && !draws_join() ? width : clearly_fuller(own, width)) ? richest : std::nullopt;
}

// The partition of the earliest draw that is ready, if so many trials were drawn since that those in slots and those
// that are ready could have begun kLaps times. Where empty slots are drawn for without end, a device may never leave
// its array for such a trial by itself, and a rule that compares trials in the order of their draws would keep all
// later ones waiting for it.
std::optional<std::string> ArrayScheduler::overtaken() const {
  if (!table_.learns() || queue_.ready() == 0) return std::nullopt;
  const int drawn = drawn_before_round();
  int open = queue_.ready_before(drawn);
  for (const auto& array : arrays_) {
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
bool ArrayScheduler::worth_leaving(const OpenArray& array) const {
  if (table_.learns()) return false;  // its empty slots are drawn for; see fuller_elsewhere()
  if (queue_.ready(array.partition()) > 0) return false;
  if (table_.paused(array.partition()) == 0 && !table_.can_draw()) return false;
  return std::min(queue_.most_ready(), widest_) >= clearly_fuller(array.occupied(), array.width());
}

void ArrayScheduler::leave(std::size_t device) {
  OpenArray& array = *arrays_[device];
  for (const int draw : array.draws()) put_back(array, draw);
  arrays_[device].reset();
  parts_[device] = {};
}

}  // namespace hfta::engine
