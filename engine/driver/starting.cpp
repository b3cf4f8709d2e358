// Driver: gives devices their next epochs, and arrays the threads of devices that have none.

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/error.hpp"
#include "engine/driver/devices/lending.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {
namespace {

constexpr double kLongEpochSeconds = 60;  // only longer epochs are interrupted to save states

}  // namespace

// Every device that has nothing to do gets an epoch, if there is one to be had. Where one fails, its trials come back,
// and devices that had nothing to do may have now.
void Driver::Impl::launch() {
  bool some_failed = false;
  do {
    const bool all_shared = act_on_idle_devices([this](std::size_t device) { array_scheduler.share(device); });
    const bool all_prepared = act_on_idle_devices([this](std::size_t device) { prepare(device); });
    some_failed = !all_shared || !all_prepared;
    start_ready();
  } while (some_failed);
}

// Acts on each device that does nothing. Returns false if one failed, or its memory did not suffice.
bool Driver::Impl::act_on_idle_devices(const std::function<void(std::size_t device)>& act) {
  bool all = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].failed || dependencies.workers.busy(i)) continue;
    try {
      act(i);
    } catch (const Error&) {
      recover(i, std::current_exception());
      all = false;
    }
  }
  return all;
}

void Driver::Impl::prepare(std::size_t device) {
  Device& d = devices[device];
  d.idle = false;
  array_scheduler.prepare(device, round);
  d.ready = array_scheduler.arrays()[device] && trim_to_budget(*array_scheduler.arrays()[device], device);
  d.idle = !d.ready;
}

// It is known which devices lend and borrow when all were asked what they have to do. None waits for that while another
// one opens an array.
void Driver::Impl::start_ready() {
  const std::vector<int> lent = lent_to_devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].ready) {
      start(i, lent[i]);
    } else if (dependencies.workers.busy(i) && array_scheduler.arrays()[i]->lent() != lent[i]) {
      devices[i].changes = true;
    }
  }
}

// The threads that each device is to be lent.
std::vector<int> Driver::Impl::lent_to_devices() {
  const double elapsed = budget.elapsed();
  std::vector<LendingDevice> all;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    LendingDevice one = array_scheduler.borrower(i, thread_changes.cost(i));
    one.idle = config.lend && devices[i].idle && !devices[i].failed;
    if (!thread_changes.may_borrow(i, one.lent, elapsed)) one.seconds = 0;
    all.push_back(std::move(one));
  }
  return lent_threads(all);
}

void Driver::Impl::start(std::size_t device, int lent) {
  Device& d = devices[device];
  OpenArray* array = array_scheduler.arrays()[device].get();
  d.ready = false;
  d.changes = false;
  d.reports.reset();
  d.pause_at = dependencies.clock.seconds() + std::max(kLongEpochSeconds, saver.interval());
  const Pause pause = [this, &d] {
    return budget.out_of_time() || halted() || aborting || d.changes || writer.failed() ||
           dependencies.clock.seconds() >= d.pause_at;
  };
  const std::string place = "epoch-" + array->device();
  array->lend(lent);
  if (lent > 0) tell_of_lending(device, lent);
  note_starts(*array);
  dependencies.workers.start(device, [this, &d, array, pause, place, lent] {
    dependencies.faults.reach(place);
    if (lent > 0) dependencies.faults.reach("epoch-on-lent-threads");
    const double before = dependencies.clock.seconds();
    d.change_took = array->change_threads() ? dependencies.clock.seconds() - before : 0;
    d.reports = array->run_epoch(pause);
  });
}

// A trial starts with its first round: one that was seated may have lost its slot again before that.
void Driver::Impl::note_starts(const OpenArray& array) {
  for (const int draw : array.draws()) {
    trials::Trial& trial = table.trial(draw);
    if (trial.started) continue;
    trial.started = dependencies.clock.utc();
    batch.changes.started.emplace_back(trial.number, *trial.started);
    batch.events.emplace_back(TrialStarted{trial.number, trial.params, array.id(), array.slot_of(draw)});
  }
}

void Driver::Impl::tell_of_lending(std::size_t device, int lent) {
  if (devices[device].told) return;
  devices[device].told = true;
  batch.events.emplace_back(
      Note{fmt::format("{} trains with {} of idle devices as well", array_scheduler.arrays()[device]->device(),
                       lent == 1 ? "a thread" : fmt::format("{} threads", lent))});
}

}  // namespace hfta::engine
