#include "engine/driver/array_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "engine/driver/placement.hpp"
#include "engine/driver/widths.hpp"

namespace hfta::engine {
namespace {

// Widths per device that draws run ahead, so that rare partitions fill arrays too; those of a sampler that learns run
// less far, because the earlier they are the fewer results they see.
constexpr int kAhead = 16, kAheadOfResults = 4;
constexpr int kDrawChunk = 256;
constexpr int kWidest = 1 << 20;

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

}  // namespace

ArrayScheduler::ArrayScheduler(std::vector<Trainer*> trainers, const Options& options, int first_array,
                               TrialTable& table, ReadyQueue& queue, CheckpointManager& checkpoints, const Clock& clock,
                               Calls calls)
    : trainers_(std::move(trainers)),
      times_(timed_devices(trainers_)),
      parts_(trainers_.size()),
      opening_seconds_(trainers_.size()),
      arrays_(trainers_.size()),
      options_(options),
      next_array_(first_array),
      table_(table),
      queue_(queue),
      checkpoints_(checkpoints),
      clock_(clock),
      calls_(std::move(calls)) {
  for (const Trainer* trainer : trainers_) facts_.push_back(trainer->device_facts());
}

void ArrayScheduler::reopen(std::size_t device, int id, const std::string& partition, int width,
                            const std::vector<std::pair<int, int>>& trials) {
  if (arrays_[device] && arrays_[device]->occupied() == 0) arrays_[device].reset();
  for (const auto& [slot, draw] : trials) queue_.push(draw);
  if (!table_.learns()) plan_ahead();
  // The draws of a method that learns depend on which arrays are open, even empty ones.
  const bool for_draws = queue_.ready(partition) == 0 && table_.learns();
  if (queue_.ready(partition) == 0 && !for_draws) return;
  const int some = !trials.empty() ? trials.front().second
                   : for_draws     ? table_.example_of(partition)
                                   : queue_.front(partition);
  if (limit(device, partition, some) < width) return;
  try {
    arrays_[device] = std::make_unique<OpenArray>(
        id, partition, width,
        trainers_[device]->open(table_.params(some), width, expected_epochs(partition), calls_.pause));
    for (const auto& [slot, draw] : trials) {
      seat(*arrays_[device], slot, draw);
      queue_.take(draw);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    lose(device);
    if (!for_draws) halve(device, some, width, error.what());
  }
}

void ArrayScheduler::prepare(std::size_t device, int rounds, WriteBatch& batch) {
  rounds_ = rounds;
  std::unique_ptr<OpenArray>& array = arrays_[device];
  if (array && options_.refill && array->occupied() > 0) give_way(device);
  draw_for(device);
  if (array && is_for_another(device)) array.reset();
  try {
    if (array && options_.refill) fill(device, batch);
    if (array && array->occupied() == 0) array.reset();
    // An array is not left for trials that cannot be entered because the store is locked.
    if (array && options_.refill && worth_leaving(*array) && calls_.enter(queue_.front(choose_partition(device)))) {
      leave(device);
    }
    if (array && options_.refill) fit(device, batch);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    run_out_of_memory(device, error.what());
  }
  while (!array) {
    draw_for(device);
    if (queue_.ready() == 0 || !try_to_open(device, batch)) return;
  }
}

// Whether the device's array, in which all trials have ended, gives way to draws that were made for another partition:
// it is not kept for the few trials that may wait in its own.
bool ArrayScheduler::is_for_another(std::size_t device) const {
  const OpenArray& array = *arrays_[device];
  return draws_join() && array.occupied() == 0 && queue_.ready() > 0 && choose_partition(device) != array.partition();
}

int ArrayScheduler::ahead() const { return table_.draws_learn() ? kAheadOfResults : kAhead; }

// Whether draws join open arrays. Draws that wait see nothing of what is learnt meanwhile. Where every trial trains
// to its end, a study has few draws in all, so that half an array of them may wait, and the slots that are still empty
// get draws for their own partition (Sampler::ask()). Where trials are stopped early there are many draws, and those
// that wait are few among them; made for the partition of an array that never falls empty, they would all be of one.
bool ArrayScheduler::draws_join() const { return table_.draws_learn() && !table_.stops_trials(); }

// Called before the device's slots are filled. Where trials are drawn only for free slots, these are the empty ones of
// the device's array, or as many as a new array can have. The partition of a draw is known only afterwards: draws of
// other partitions wait for arrays of their own, and only so many may wait. Whether to draw depends only on the waiting
// trials and the open arrays: a run that was killed between two draws continues with the second.
void ArrayScheduler::draw_for(std::size_t device) {
  if (!table_.learns()) return plan_ahead();
  const std::unique_ptr<OpenArray>& array = arrays_[device];
  const bool is_open = array && array->occupied() > 0;
  if (is_open && !options_.refill) return;
  for (;;) {
    if (queue_.ready() == 0 && !is_open) {
      if (!calls_.draw(1, std::nullopt)) return;
      continue;
    }
    const std::string partition = is_open ? array->partition() : choose_partition(device);
    const int one = is_open ? array->some_draw() : queue_.front(partition);
    const int most = limit(device, partition, one);
    const int wanted = is_open ? most - array->occupied() : most;
    const int ready = queue_.ready(partition);
    const int later = (is_open && keeps_busy(device, array->occupied() + ready) ? 1 : ahead()) * most;
    if (ready >= wanted || queue_.ready() >= wanted + later) return;
    const bool joins = draws_join() && 2 * (queue_.ready() - ready) >= most;
    if (!calls_.draw(wanted - ready, joins ? std::optional(one) : std::nullopt)) return;
  }
}

// Methods that do not learn may draw ahead. Hyperband's rungs wait for all trials of a bracket, so these are planned
// together; other trials are planned as arrays need them. A trial enters the store when it gets a slot: until then an
// enqueued trial may come before it. The number of planned trials depends on how many have begun, not on how many have
// rows or wait: widths depend on it, so a resumed study must plan as one that was never stopped.
void ArrayScheduler::plan_ahead() {
  const bool all = table_.scheduler().capacity().has_value();
  const auto ahead = std::int64_t{kAhead} * widest_ * static_cast<std::int64_t>(trainers_.size());
  // It plans up to the next multiple: from wherever a run begins, it plans as far as one that was never stopped.
  while ((all || table_.drawn() < table_.begun() + ahead) &&
         calls_.draw(kDrawChunk - table_.drawn() % kDrawChunk, std::nullopt)) {
  }
}

void ArrayScheduler::fill(std::size_t device, WriteBatch& batch) {
  OpenArray& array = *arrays_[device];
  int coming = std::min(array.width() - array.occupied(), queue_.ready(array.partition()));
  if (coming <= 0) return;
  if (const auto share = share_of(device, array.partition(), queue_.front(array.partition()))) {
    coming = std::min(coming, *share - array.occupied());
  }
  if (coming <= 0) return;
  // If the store is locked, only trials that it has already are seated.
  (void)calls_.enter(queue_.last_of(array.partition(), coming));
  for (; coming > 0; --coming) {
    const int slot = array.free_slot();
    const int draw = queue_.front(array.partition());
    if (draw >= table_.entered()) return;
    trials::Trial& trial = table_.trial(draw);
    seat(array, slot, draw);
    queue_.take(draw);
    if (trial.started) continue;
    trial.started = clock_.utc();
    batch.changes.started.emplace_back(trial.number, *trial.started);
    batch.events.emplace_back(TrialStarted{trial.number, trial.params, array.id(), slot});
  }
}

// A state that does not fit the trial's model (for example because of other shapes) belongs to another history, even if
// its file is undamaged: the trial resumes from the state before it, or begins anew.
void ArrayScheduler::seat(OpenArray& array, int slot, int draw) {
  TrialRecord& entry = table_.entry(draw);
  const int number = table_.trial(draw).number;
  for (;;) {
    const HeldState state = checkpoints_.restore(entry, number);
    try {
      array.start(slot, draw, state, table_);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kStorage || !state) throw;
      const std::optional<std::filesystem::path> file = checkpoints_.discard(entry, number);
      if (!file) throw;
      calls_.note(fmt::format("trial {}: {} does not fit its model ({}); it goes on from the state before that", number,
                              file->string(), error.what()));
      table_.release(draw);
    }
  }
}

// The candidates are the partitions that have an array and the richest one without an array.
std::string ArrayScheduler::choose_partition(std::size_t device) const {
  if (auto partition = overtaken()) return *std::move(partition);
  std::map<std::string, double> speeds;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i] && queue_.ready(arrays_[i]->partition()) > 0) speeds[arrays_[i]->partition()] += facts_[i].speed;
  }
  for (const std::string& partition : queue_.richest(speeds.size() + 1)) speeds.try_emplace(partition, 0);
  std::vector<WaitingPartition> waiting;
  waiting.reserve(speeds.size());
  for (const auto& [partition, speed] : speeds) waiting.push_back({partition, queue_.work(partition), speed});
  return partition_for(waiting, facts_[device].speed).name;
}

int ArrayScheduler::parts_for(const std::string& partition) const {
  int idle = 0;
  for (std::size_t i = 0; i < arrays_.size(); ++i) idle += trainers_[i] != nullptr && arrays_[i] == nullptr ? 1 : 0;
  return parts_of(queue_.work(partition), queue_.work(), idle);
}

// The partition of a new array; if the store is locked, one of which it has a trial. nullopt: none can be opened now.
std::optional<std::string> ArrayScheduler::partition_to_open(std::size_t device) {
  constexpr std::size_t kOthers = 8;
  std::string partition = choose_partition(device);
  if (!calls_.enter(queue_.front(partition))) return queue_.first_entered();
  if (takes_part(device, partition)) return partition;
  for (std::string& other : queue_.richest(kOthers)) {
    if (takes_part(device, other) && calls_.enter(queue_.front(other))) return std::move(other);
  }
  return std::nullopt;
}

// The number of slots of a new array.
int ArrayScheduler::width_to_open(std::size_t device, const std::string& partition, int most) {
  const int waiting = queue_.ready(partition);
  if (table_.can_draw()) return std::min(most, waiting);
  const std::optional<int> share = share_of(device, partition, queue_.front(partition));
  if (share && *share > 0) return std::min(*share, waiting);
  return even_width(waiting, most, parts_for(partition));
}

// Opens an array, if possible. False: none can be opened now.
bool ArrayScheduler::try_to_open(std::size_t device, WriteBatch& batch) {
  const std::optional<std::string> chosen = partition_to_open(device);
  if (!chosen) return false;
  const std::string& partition = *chosen;
  const int first = queue_.front(partition);
  const int width = width_to_open(device, partition, limit(device, partition, first));
  calls_.opens();
  const double began = clock_.seconds();
  try {
    arrays_[device] = std::make_unique<OpenArray>(
        next_array_, partition, width,
        trainers_[device]->open(table_.params(first), width, expected_epochs(partition), calls_.pause));
    fill(device, batch);
    if (arrays_[device]->occupied() == 0) {
      arrays_[device].reset();
      return false;
    }
    opening_seconds_[device] = clock_.seconds() - began;
    ++next_array_;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    lose(device);
    halve(device, first, width, error.what());
  }
  return true;
}

void ArrayScheduler::fit(std::size_t device, WriteBatch& batch) {
  OpenArray& array = *arrays_[device];
  const int draw = array.some_draw();
  const std::optional<int> share = share_of(device, array.partition(), draw);
  int wanted = array.occupied() + queue_.ready(array.partition());
  if (share) wanted = std::clamp(*share, array.occupied(), wanted);
  std::optional<int> width = better_width(array.width(), wanted, limit(device, array.partition(), draw));
  if (share && wanted > array.width()) width = wanted;  // a slot less here is one more where it takes longer
  if (!width) return;
  const int coming = std::min(*width - array.occupied(), queue_.ready(array.partition()));
  if (coming > 0 && !calls_.enter(queue_.last_of(array.partition(), coming))) return;  // it would stay empty
  array.resize(*width, table_);
  fill(device, batch);
}

// Takes a trial out of its slot; it waits for another one.
void ArrayScheduler::put_back(OpenArray& array, int draw) {
  const int slot = array.slot_of(draw);
  table_.rest(draw, Phase::kReady, array.extract(slot));
  array.clear(slot);
  queue_.push(draw);
}

void ArrayScheduler::lose(std::size_t device) {
  parts_[device] = {};
  const std::unique_ptr<OpenArray> array = std::move(arrays_[device]);
  if (!array) return;
  for (const int draw : array->draws()) {
    table_.rest(draw, Phase::kReady, nullptr);
    queue_.push(draw);
  }
}

void ArrayScheduler::retire(std::size_t device) {
  lose(device);
  trainers_[device] = nullptr;
}

void ArrayScheduler::run_out_of_memory(std::size_t device, const std::string& what) {
  const OpenArray& array = *arrays_[device];
  const int draw = array.occupied() > 0 ? array.some_draw() : queue_.front(array.partition());
  const int width = array.width();
  lose(device);
  halve(device, draw, width, what);
}

// Halves the limit of the array's width. `draw`: one of the trials that were tried, the only one where the width is 1.
void ArrayScheduler::halve(std::size_t device, int draw, int width, const std::string& what) {
  limits_[{device, table_.entry(draw).partition}] = std::max(1, width / 2);
  if (width > 1) {
    calls_.note(fmt::format("{}; going on with arrays of {} slots instead of {}", what, width / 2, width));
    return;
  }
  if (alone_.insert(draw).second) {
    calls_.note(fmt::format("{}, with trial {} alone; trying once more", what, table_.trial(draw).number));
    return;
  }
  queue_.take(draw);
  calls_.fail(draw, fmt::format("cannot be trained even alone: {}", what));
}

int ArrayScheduler::limit(std::size_t device, const std::string& partition, int draw) {
  const auto known = limits_.find({device, partition});
  if (known != limits_.end()) return known->second;
  const int wanted = options_.width ? *options_.width : trainers_[device]->plan(table_.params(draw)).width;
  const int most = std::clamp(wanted, 1, kWidest);
  widest_ = std::max(widest_, most);
  return limits_[{device, partition}] = most;
}

// The partition's share of all epochs that are left, by the trials that are ready now.
double ArrayScheduler::expected_epochs(const std::string& partition) const {
  const double ready = queue_.work();
  const auto left = static_cast<double>(table_.epochs_left().value_or(0));
  return ready > 0 ? std::max(queue_.work(partition), left * queue_.work(partition) / ready) : 0;
}

}  // namespace hfta::engine
