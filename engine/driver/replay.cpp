// Ledger's side of resuming: what the store has is told to the scheduler again.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "engine/driver/ledger.hpp"
#include "engine/driver/measure.hpp"

namespace hfta::engine {

void Ledger::restore(const std::vector<trials::Trial>& stored, const std::vector<int>& numbers) {
  std::map<int, const trials::Trial*> by_number;
  for (const trials::Trial& trial : stored) by_number[trial.number] = &trial;
  for (const int number : numbers) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) {
      throw Error(ErrorKind::kStorage,
                  fmt::format("study '{}': trial {} is absent from the store, wanted every trial that was drawn",
                              config_.study, number));
    }
    trials_.push_back(*found->second);
    if (trials_.back().state == trials::State::kWaiting) trials_.back().state = trials::State::kRunning;
    entries_.emplace_back();
    ++counts_[static_cast<std::size_t>(trials_.back().state)];
  }
  replay();
}

void Ledger::replay() {
  int last = 0;
  for (int draw = 0; draw < drawn(); ++draw) {
    const trials::Trial& t = trial(draw);
    if (!t.epochs.empty()) last = std::max(last, t.epochs.back().epoch);
  }
  for (int epoch = 0; epoch <= last; ++epoch) replay_epoch(epoch);
  settle_strangers();
}

// Epoch 0 stands for what happened before any: trials that failed without a row. Rungs fall due between epochs, as
// they did in the run, since nobody trains on before the verdict.
void Ledger::replay_epoch(int epoch) {
  for (int draw = 0; draw < drawn(); ++draw) {
    const trials::Trial& t = trial(draw);
    Entry& e = entry(draw);
    const auto record = std::find_if(t.epochs.begin(), t.epochs.end(), [&](const auto& r) { return r.epoch == epoch; });
    bool told = false;
    if (record != t.epochs.end()) {
      ++epochs_;
      e.recorded = epoch;
      const Measurement measured = measure(record->metrics, config_.metric, epoch);
      told = !measured.failure.empty();
      if (!told) take_value(draw, epoch, measured.value);
      e.decision = strategy_.scheduler->report(draw, epoch, told ? std::numeric_limits<double>::quiet_NaN() : *e.value);
    }
    const int last = t.epochs.empty() ? 0 : t.epochs.back().epoch;
    if (t.state == trials::State::kFail && epoch == last && !told) {
      strategy_.scheduler->fail(draw);
      e.decision = search::Decision::kStop;
    }
  }
  (void)take_verdicts();
}

// Another program may have ended one of our trials. The scheduler must not wait for it.
void Ledger::settle_strangers() {
  for (int draw = 0; draw < drawn(); ++draw) {
    Entry& e = entry(draw);
    if (trial(draw).state == trials::State::kRunning) continue;
    count_done(draw);
    const bool expected = e.decision == search::Decision::kStop || e.decision == search::Decision::kComplete;
    if (!expected) strategy_.scheduler->fail(draw);
  }
  (void)take_verdicts();
  for (int draw = 0; draw < drawn(); ++draw) {
    const Entry& e = entry(draw);
    if (e.phase != Phase::kDone && e.decision == search::Decision::kPause) set_phase(draw, Phase::kPaused);
  }
}

}  // namespace hfta::engine
