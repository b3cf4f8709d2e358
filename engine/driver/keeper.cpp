#include "engine/driver/keeper.hpp"

#include <algorithm>
#include <utility>

namespace hfta::engine {

Keeper::Keeper(storage::Checkpoints& running, storage::Checkpoints& finished, const StudyConfig& config)
    : running_(running),
      finished_(finished),
      most_(static_cast<std::size_t>(std::max(config.keep, 1))),  // the best one is tested when the study ends
      goal_(config.goal),
      select_best_(config.select_best) {}

std::size_t Keeper::rank(double value, int number) const {
  const auto worse = std::find_if(best_.begin(), best_.end(), [&](const Kept& kept) {
    return trials::better(value, kept.value, goal_) || (value == kept.value && number < kept.number);
  });
  return static_cast<std::size_t>(worse - best_.begin());
}

bool Keeper::is_kept(int number) const {
  return std::any_of(best_.begin(), best_.end(), [&](const Kept& kept) { return kept.number == number; });
}

void Keeper::begin(Ledger& ledger) {
  running_.sweep();
  finished_.sweep();
  std::set<int> unfinished;
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    const trials::Trial& t = ledger.trial(draw);
    if (ledger.entry(draw).phase != Phase::kDone) unfinished.insert(t.number);
    if (t.state != trials::State::kComplete || !t.value) continue;
    const std::size_t at = rank(*t.value, t.number);
    best_.insert(best_.begin() + static_cast<std::ptrdiff_t>(at), {*t.value, t.number});
    if (best_.size() > most_) best_.pop_back();
  }
  for (const int number : running_.trials()) (unfinished.contains(number) ? on_disk_ : needless_).insert(number);
  for (const int number : finished_.trials()) {
    if (!is_kept(number) && !unfinished.contains(number)) surpassed_.insert(number);
  }
  on_disk_.insert(needless_.begin(), needless_.end());
  after_commit();
}

void Keeper::save(Entry& entry, int number, const SlotState& state) {
  if (entry.trained == 0 || entry.saved == entry.trained) return;
  if (select_best_ && entry.best_state) finished_.save(number, entry.value_epoch, *entry.best_state);
  on_disk_.insert(number);
  running_.save(number, entry.trained, state);
  entry.saved = entry.trained;
}

void Keeper::restore(Entry& entry, int number) {
  if (entry.state) return;
  entry.trained = 0;
  if (!on_disk_.contains(number)) return;
  std::optional<storage::Checkpoint> found = running_.load(number);
  // A checkpoint of an epoch that the store does not know (a restored backup of the store) belongs to another history.
  if (!found || found->epoch < 1 || found->epoch > entry.recorded) return;
  if (select_best_ && !entry.best_state && entry.value_epoch <= found->epoch) {
    std::optional<storage::Checkpoint> best = finished_.load(number);
    if (!best || best->epoch != entry.value_epoch) return;
    entry.best_state = std::move(best->bytes);
  }
  entry.trained = entry.saved = found->epoch;
  entry.state = std::move(found->bytes);
}

void Keeper::keep(int number, double value, int epoch, const SlotState& state) {
  const std::size_t at = rank(value, number);
  if (at >= most_) return;
  finished_.save(number, epoch, state);
  best_.insert(best_.begin() + static_cast<std::ptrdiff_t>(at), {value, number});
  if (best_.size() > most_) {
    surpassed_.insert(best_.back().number);
    best_.pop_back();
  }
}

void Keeper::forget(int number) {
  needless_.insert(number);
  // With metric.select best, a trial has its best weights on disk while it still runs.
  if (on_disk_.contains(number) && !is_kept(number)) surpassed_.insert(number);
}

void Keeper::after_commit() {
  for (const int number : needless_) {
    if (on_disk_.erase(number) > 0) running_.remove(number);
  }
  needless_.clear();
  for (const int number : surpassed_) finished_.remove(number);
  surpassed_.clear();
}

std::optional<SlotState> Keeper::finished_state(int number) {
  std::optional<storage::Checkpoint> found = finished_.load(number);
  if (!found) return std::nullopt;
  return std::move(found->bytes);
}

}  // namespace hfta::engine
