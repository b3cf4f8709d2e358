// Driver: how trials come into the store, those that the sampler draws and those that other programs enqueue.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"
#include "search/completion.hpp"

namespace hfta::engine {
namespace {

constexpr double kAheadSeconds = 60, kLockedSeconds = 30;
constexpr int kMostTries = 6;  // to add trials to a store that is locked, of ten seconds each

}  // namespace

// Trials need numbers from the store, so this waits while another program locks it; training that is under way goes on.
bool Driver::Impl::enter(int draw) {
  for (int tries = 1;; ++tries) {
    try {
      enter_once(draw);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kLocked || tries >= kMostTries) throw;
      if (seams.stop.load() != 0) return false;
    }
  }
}

void Driver::Impl::enter_once(int draw) {
  std::vector<trials::Params> params;
  for (int next = ledger.entered(); next <= draw; ++next) params.push_back(ledger.trial(next).params);
  if (!params.empty()) ledger.enter(recorder.add_trials(params, seams.clock.utc()));
}

// A store that is locked for a minute must keep no slot empty, so the trials that are to begin within that have their
// rows already. No more than that: what is in the store cannot make room for an enqueued one.
void Driver::Impl::enter_ahead() {
  const double now = seams.clock.seconds();
  if (now < ahead_from) return;
  const double trials = std::min(1e6, std::ceil(rate.rate() * kAheadSeconds / ledger.mean_epochs()));
  try {
    enter_once(std::min(ledger.drawn(), ledger.begun() + static_cast<int>(trials)) - 1);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kLocked) throw;
    ahead_from = now + kLockedSeconds;
  }
}

void Driver::Impl::give_up(int draw, const std::string& reason) {
  if (!enter(draw)) return;
  finish(draw, trials::State::kFail, reason);
  for (const search::Verdict& verdict : ledger.take_verdicts()) act_on_paused(verdict);
}

// They come before what is only planned, and count to run_cap like any other: those for which there is no room wait for
// a higher one.
void Driver::Impl::take_enqueued() {
  if (!ledger.has_room()) return;
  try {
    if (auto waiting = recorder.enqueued()) enqueued = std::move(*waiting);
    while (!enqueued.empty() && ledger.has_room()) {
      take(enqueued.front());
      enqueued.erase(enqueued.begin());
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kLocked) throw;  // they wait until another round
  }
}

void Driver::Impl::take(const storage::EnqueuedTrial& asked) {
  search::Completion completion = search::complete(config.space, asked.params, config.seed, asked.number);
  if (!recorder.claim(asked.number, completion.params, seams.clock.utc(), completion.problem)) return;
  for (int draw = ledger.entered(); draw < ledger.drawn(); ++draw) queue.take(draw);
  ledger.forget_planned();
  const int draw = ledger.add(asked.number, std::move(completion.params), /*enqueued=*/true);
  if (!completion.problem.empty()) {
    page.notes.push_back(fmt::format("trial {} cannot be tried: {}", asked.number, completion.problem));
    ledger.finish(draw, trials::State::kFail, completion.problem);
    for (const search::Verdict& verdict : ledger.take_verdicts()) act_on_paused(verdict);
    return;
  }
  ledger.assign(draw, any_trainer().partition(ledger.trial(draw).params));
  queue.push(draw);
}

}  // namespace hfta::engine
