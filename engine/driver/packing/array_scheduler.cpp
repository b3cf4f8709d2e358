#include "engine/driver/packing/array_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/packing/widths.hpp"

namespace hfta::engine {

ArrayScheduler::ArrayScheduler(const std::vector<Trainer*>& trainers, const Options& options, int first_array,
                               TrialTable& table, ReadyQueue& queue, CheckpointManager& checkpoints, const Clock& clock,
                               Calls calls)
    : table_(table),
      queue_(queue),
      checkpoints_(checkpoints),
      clock_(clock),
      calls_(std::move(calls)),
      options_(options),
      next_array_(first_array),
      devices_(trainers),
      times_(timed_devices(trainers)),
      limits_(options.width, [this](std::size_t device,
                                    int draw) { return devices_.trainer(device).plan(table_.params(draw)).width; }),
      sharing_(devices_, times_, limits_, table, queue),
      choice_(devices_, limits_, table, queue),
      draws_(devices_, limits_, choice_, table, queue, options.refill, calls_.draw) {}

void ArrayScheduler::reopen(std::size_t device, int id, const std::string& partition, int width,
                            const std::vector<std::pair<int, int>>& trials) {
  std::unique_ptr<OpenArray>& array = devices_.array(device);
  if (array && array->occupied() == 0) array.reset();
  for (const auto& [slot, draw] : trials) queue_.push(draw);
  if (!table_.learns()) draws_.plan_ahead();
  // The draws of a method that learns depend on which arrays are open, even empty ones.
  const bool for_draws = queue_.ready(partition) == 0 && table_.learns();
  if (queue_.ready(partition) == 0 && !for_draws) return;
  const int some = !trials.empty() ? trials.front().second
                   : for_draws     ? table_.example_of(partition)
                                   : queue_.front(partition);
  if (limits_.limit(device, partition, some) < width) return;
  try {
    array = std::make_unique<OpenArray>(
        id, partition, width,
        devices_.trainer(device).open(table_.params(some), width, expected_epochs(partition), calls_.pause));
    for (const auto& [slot, draw] : trials) {
      seat(*array, slot, draw);
      queue_.take(draw);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    lose(device);
    if (!for_draws) halve(device, some, width, error.what());
  }
}

void ArrayScheduler::prepare(std::size_t device, int rounds) {
  choice_.begin(rounds);
  std::unique_ptr<OpenArray>& array = devices_.array(device);
  if (array && options_.refill && array->occupied() > 0) {
    const std::optional<int> first = choice_.comes_first(device);
    if (first && calls_.enter(*first)) leave(device);
  }
  draws_.draw_for(device);
  if (array && choice_.is_for_another(device)) array.reset();
  try {
    if (array && options_.refill) fill(device);
    if (array && array->occupied() == 0) array.reset();
    // An array is not left for trials that cannot be entered because the store is locked.
    if (array && options_.refill && choice_.worth_leaving(device) &&
        calls_.enter(queue_.front(choice_.choose(device)))) {
      leave(device);
    }
    if (array && options_.refill) fit(device);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    run_out_of_memory(device, error.what());
  }
  while (!array) {
    draws_.draw_for(device);
    if (queue_.ready() == 0 || !try_to_open(device)) return;
  }
}

void ArrayScheduler::fill(std::size_t device) {
  OpenArray& array = *devices_.array(device);
  int coming = std::min(array.width() - array.occupied(), queue_.ready(array.partition()));
  if (coming <= 0) return;
  if (const auto share = sharing_.share_of(device, array.partition(), queue_.front(array.partition()))) {
    coming = std::min(coming, *share - array.occupied());
  }
  if (coming <= 0) return;
  // If the store is locked, only trials that it has already are seated.
  (void)calls_.enter(queue_.last_of(array.partition(), coming));
  for (; coming > 0; --coming) {
    const int slot = array.free_slot();
    const int draw = queue_.front(array.partition());
    if (draw >= table_.entered()) return;
    seat(array, slot, draw);
    queue_.take(draw);
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

// The partition of a new array; if the store is locked, one of which it has a trial. nullopt: none can be opened now.
std::optional<std::string> ArrayScheduler::partition_to_open(std::size_t device) {
  constexpr std::size_t kOthers = 8;
  std::string partition = choice_.choose(device);
  if (!calls_.enter(queue_.front(partition))) return queue_.first_entered();
  if (sharing_.takes_part(device, partition)) return partition;
  for (std::string& other : queue_.richest(kOthers)) {
    if (sharing_.takes_part(device, other) && calls_.enter(queue_.front(other))) return std::move(other);
  }
  return std::nullopt;
}

// The number of slots of a new array.
int ArrayScheduler::width_to_open(std::size_t device, const std::string& partition, int most) {
  const int waiting = queue_.ready(partition);
  if (table_.can_draw()) return std::min(most, waiting);
  const std::optional<int> share = sharing_.share_of(device, partition, queue_.front(partition));
  if (share && *share > 0) return std::min(*share, waiting);
  return even_width(waiting, most, sharing_.parts_for(partition));
}

// Opens an array, if possible. False: none can be opened now.
bool ArrayScheduler::try_to_open(std::size_t device) {
  const std::optional<std::string> chosen = partition_to_open(device);
  if (!chosen) return false;
  const std::string& partition = *chosen;
  const int first = queue_.front(partition);
  const int most = limits_.limit(device, partition, first);
  draws_.draw_for(device);  // a device may recommend more slots than trials were planned for
  const int width = width_to_open(device, partition, most);
  std::unique_ptr<OpenArray>& array = devices_.array(device);
  calls_.opens();
  const double began = clock_.seconds();
  try {
    array = std::make_unique<OpenArray>(
        next_array_, partition, width,
        devices_.trainer(device).open(table_.params(first), width, expected_epochs(partition), calls_.pause));
    fill(device);
    if (array->occupied() == 0) {
      array.reset();
      return false;
    }
    times_.opened(device, clock_.seconds() - began);
    ++next_array_;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    lose(device);
    halve(device, first, width, error.what());
  }
  return true;
}

void ArrayScheduler::fit(std::size_t device) {
  OpenArray& array = *devices_.array(device);
  const int draw = array.some_draw();
  const std::optional<int> share = sharing_.share_of(device, array.partition(), draw);
  int wanted = array.occupied() + queue_.ready(array.partition());
  if (share) wanted = std::clamp(*share, array.occupied(), wanted);
  std::optional<int> width = better_width(array.width(), wanted, limits_.limit(device, array.partition(), draw));
  if (share && wanted > array.width()) width = wanted;  // a slot less here is one more where it takes longer
  if (!width) return;
  const int coming = std::min(*width - array.occupied(), queue_.ready(array.partition()));
  if (coming > 0 && !calls_.enter(queue_.last_of(array.partition(), coming))) return;  // it would stay empty
  array.resize(*width, table_);
  fill(device);
}

void ArrayScheduler::share(std::size_t device) {
  const std::unique_ptr<OpenArray>& array = devices_.array(device);
  if (!array || array->occupied() == 0 || !options_.refill || queue_.ready(array->partition()) > 0) return;
  const int surplus = sharing_.surplus(device);
  if (surplus > 0) give_up(device, surplus);
}

// Gives up the trials that have most to do, as they gain most; of equals, the latest.
void ArrayScheduler::give_up(std::size_t device, int count) {
  OpenArray& array = *devices_.array(device);
  if (count == array.occupied()) return leave(device);
  std::vector<std::pair<int, int>> trials;  // (epochs to do, draw)
  for (const int draw : array.draws()) trials.emplace_back(table_.epochs_to_target(draw), draw);
  std::sort(trials.rbegin(), trials.rend());
  trials.resize(static_cast<std::size_t>(count));
  for (const auto& [epochs, draw] : trials) put_back(array, draw);
  array.resize(array.occupied(), table_);
}

void ArrayScheduler::leave(std::size_t device) {
  OpenArray& array = *devices_.array(device);
  for (const int draw : array.draws()) put_back(array, draw);
  devices_.array(device).reset();
  times_.drop(device);
}

// Takes a trial out of its slot; it waits for another one.
void ArrayScheduler::put_back(OpenArray& array, int draw) {
  const int slot = array.slot_of(draw);
  table_.rest(draw, Phase::kReady, array.extract(slot));
  array.clear(slot);
  queue_.push(draw);
}

void ArrayScheduler::lose(std::size_t device) {
  times_.drop(device);
  const std::unique_ptr<OpenArray> array = std::move(devices_.array(device));
  if (!array) return;
  for (const int draw : array->draws()) {
    table_.rest(draw, Phase::kReady, nullptr);
    queue_.push(draw);
  }
}

void ArrayScheduler::retire(std::size_t device) {
  lose(device);
  devices_.retire(device);
}

void ArrayScheduler::run_out_of_memory(std::size_t device, const std::string& what) {
  const OpenArray& array = *devices_.array(device);
  const int draw = array.occupied() > 0 ? array.some_draw() : queue_.front(array.partition());
  const int width = array.width();
  lose(device);
  halve(device, draw, width, what);
}

// Halves the limit of the array's width. `draw`: one of the trials that were tried, the only one where the width is 1.
void ArrayScheduler::halve(std::size_t device, int draw, int width, const std::string& what) {
  limits_.halve(device, table_.entry(draw).partition, width);
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

double ArrayScheduler::timed(std::size_t device, double seconds, bool ended) {
  const OpenArray& array = *devices_.array(device);
  return times_.add(device, array.partition(), array.occupied(), {seconds, array.lent() > 0, ended});
}

// The first change of threads costs no more than opening the array did, as both compile kernels. Opening may have
// included measuring, so an epoch's time is assumed where that is less.
LendingDevice ArrayScheduler::borrower(std::size_t device, double cost) const {
  LendingDevice found{devices_.facts(device).threads, devices_.facts(device).cpus};
  const std::unique_ptr<OpenArray>& array = devices_.array(device);
  if (!array || array->occupied() == 0 || !array->can_borrow()) return found;
  found.lent = array->lent();
  const std::optional<double> epoch = times_.epochs().seconds(device, array->partition(), array->occupied());
  if (!epoch || !times_.lending_helps(device, array->partition())) return found;
  found.cost = cost > 0 ? cost : std::min(times_.opening(device), *epoch);
  found.seconds = *epoch * sharing_.epochs_to_do(*array);
  return found;
}

// The partition's share of all epochs that are left, by the trials that are ready now.
double ArrayScheduler::expected_epochs(const std::string& partition) const {
  const double ready = queue_.work();
  const auto left = static_cast<double>(table_.epochs_left().value_or(0));
  return ready > 0 ? std::max(queue_.work(partition), left * queue_.work(partition) / ready) : 0;
}

}  // namespace hfta::engine
