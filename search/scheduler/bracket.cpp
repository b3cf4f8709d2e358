#include "search/scheduler/bracket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler/verdicts.hpp"

namespace hfta::search {

Bracket::Bracket(std::vector<Rung> rungs, trials::Goal goal)
    : rungs_(std::move(rungs)), goal_(goal), pending_(rungs_.front().trials) {}

Decision Bracket::report(int trial, int epoch, double value, std::vector<Verdict>& verdicts) {
  Record& record = records_[trial];
  check(trial, epoch, record);
  record.seen = std::max(record.seen, epoch);
  const bool waiting = awaited(record);
  if (!std::isfinite(value)) {
    record.failed_at = std::min(record.failed_at, epoch);
  } else if (const auto rung = rung_at(epoch)) {
    const auto [known, is_new] = record.values.emplace(*rung, value);
    if (!is_new) require_same(trial, epoch, known->second, value);
  }
  const Decision decision = decide(record, epoch);  // before the rung is settled: the answer is the same for each of it
  settle_if(waiting && !awaited(record), verdicts);
  return decision;
}

void Bracket::fail(int trial, std::vector<Verdict>& verdicts) {
  Record& record = records_[trial];
  if (record.stopped || completed(record)) return;
  const bool waiting = awaited(record);
  record.failed_at = std::min(record.failed_at, record.seen + 1);
  settle_if(waiting && !awaited(record), verdicts);
}

int Bracket::target(int trial) const {
  const auto found = records_.find(trial);
  return rungs_[found == records_.end() ? 0 : found->second.rung].epochs;
}

void Bracket::check(int trial, int epoch, const Record& record) const {
  const int most = record.stopped ? rungs_[record.rung].epochs : rungs_.back().epochs;
  if (epoch >= 1 && epoch <= most) return;
  throw Error(ErrorKind::kInternal, fmt::format("trial {}: found a report of epoch {}, wanted 1 to {}{}", trial, epoch,
                                                most, record.stopped ? " (it was stopped there)" : ""));
}

std::optional<std::size_t> Bracket::rung_at(int epoch) const {
  for (std::size_t i = 0; i < rungs_.size(); ++i) {
    if (rungs_[i].epochs == epoch) return i;
  }
  return std::nullopt;
}

bool Bracket::ranks(const Record& record, std::size_t rung) const {
  return record.values.count(rung) != 0 && record.failed_at > rungs_[rung].epochs;
}

bool Bracket::completed(const Record& record) const {
  return record.rung + 1 == rungs_.size() && ranks(record, record.rung);
}

// Whether the rung being settled waits for the trial.
bool Bracket::awaited(const Record& record) const {
  return record.rung == current_ && !record.stopped && record.values.count(current_) == 0 &&
         record.failed_at > rungs_[current_].epochs;
}

Decision Bracket::decide(const Record& record, int epoch) const {
  if (record.stopped || record.failed_at != kNever) return Decision::kStop;
  if (completed(record)) return Decision::kComplete;
  if (record.values.count(record.rung) != 0) return Decision::kPause;
  // A report beyond its rung comes ahead of its verdict, as when a study's records are read again.
  return epoch < rungs_[record.rung].epochs ? Decision::kContinue : Decision::kPause;
}

void Bracket::settle_if(bool one_fewer, std::vector<Verdict>& verdicts) {
  if (one_fewer) --pending_;
  while (pending_ == 0 && current_ + 1 < rungs_.size()) settle(verdicts);
}

// Ranks the rung's trials, stops all but the best, and counts the trials that the next rung waits for.
void Bracket::settle(std::vector<Verdict>& verdicts) {
  std::vector<int> ranked;
  for (const auto& [trial, record] : records_) {
    if (record.rung == current_ && !record.stopped && ranks(record, current_)) ranked.push_back(trial);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [this](int a, int b) {
    return trials::better(records_.at(a).values.at(current_), records_.at(b).values.at(current_), goal_);
  });
  const auto kept = std::min(ranked.size(), static_cast<std::size_t>(rungs_[current_ + 1].trials));
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    Record& record = records_.at(ranked[i]);
    if (i < kept) {
      record.rung = current_ + 1;
    } else {
      record.stopped = true;
    }
    verdicts.push_back({ranked[i], i < kept ? Decision::kContinue : Decision::kStop});
  }
  ++current_;
  for (const auto& [trial, record] : records_) pending_ += awaited(record) ? 1 : 0;
}

std::int64_t cost_of(const std::vector<Rung>& rungs) {
  std::int64_t cost = 0;
  int trained = 0;
  for (const Rung& rung : rungs)
    cost += std::int64_t{rung.trials} * (rung.epochs - std::exchange(trained, rung.epochs));
  return cost;
}

}  // namespace hfta::search
