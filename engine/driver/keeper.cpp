#include "engine/driver/keeper.hpp"

#include <algorithm>
#include <utility>

namespace hfta::engine {

Keeper::Keeper(storage::Checkpoints& running, storage::Checkpoints& finished, const StudyConfig& config,
               std::function<void()> settle)
    : running_(running),
      finished_(finished),
      settle_(std::move(settle)),
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
  for (const int number : running_.trials()) {
    unfinished.contains(number) ? (void)on_disk_.insert(number) : running_.remove(number);
  }
  for (const int number : finished_.trials()) {
    if (!is_kept(number) && !unfinished.contains(number)) finished_.remove(number);
  }
}

void Keeper::save(Entry& entry, int number, const HeldState& state, Page& page) {
  if (!entry.changed) return;
  if (select_best_ && entry.best_state) page.states.push_back({true, number, entry.value_epoch, entry.best_state});
  page.states.push_back({false, number, entry.trained, state});
  on_disk_.insert(number);
  entry.changed = false;
}

HeldState Keeper::restore(Entry& entry, int number) {
  if (entry.state) return entry.state;
  entry.trained = 0;
  entry.changed = false;
  if (!on_disk_.contains(number)) return nullptr;
  settle_();
  std::optional<storage::Checkpoint> found = running_.load(number);
  // A checkpoint of an epoch that the store does not know (a restored backup of the store) belongs to another history.
  if (!found || found->epoch > entry.recorded) return nullptr;
  if (select_best_ && !entry.best_state && entry.value_epoch > 0 && entry.value_epoch <= found->epoch) {
    std::optional<storage::Checkpoint> best = finished_.load(number);
    if (!best || best->epoch != entry.value_epoch) return nullptr;
    entry.best_state = std::make_shared<const SlotState>(std::move(best->bytes));
  }
  entry.trained = found->epoch;
  return std::make_shared<const SlotState>(std::move(found->bytes));
}

std::optional<std::filesystem::path> Keeper::discard(Entry& entry, int number) {
  if (entry.changed || entry.trained == 0 || !on_disk_.contains(number)) return std::nullopt;
  entry.best_state.reset();
  return running_.discard(number, entry.trained);
}

void Keeper::keep(int number, double value, int epoch, const HeldState& state, Page& page) {
  const std::size_t at = rank(value, number);
  if (at >= most_) return;
  page.kept.push_back({true, number, epoch, state});
  best_.insert(best_.begin() + static_cast<std::ptrdiff_t>(at), {value, number});
  if (best_.size() > most_) {
    page.surpassed.push_back(best_.back().number);
    best_.pop_back();
  }
}

void Keeper::forget(int number, Page& page) {
  if (on_disk_.erase(number) == 0) return;
  page.needless.push_back(number);
  // With metric.select best, a trial has its best weights on disk while it still runs.
  if (select_best_ && !is_kept(number)) page.surpassed.push_back(number);
}

std::optional<SlotState> Keeper::finished_state(int number) {
  settle_();
  std::optional<storage::Checkpoint> found = finished_.load(number);
  if (!found) return std::nullopt;
  return std::move(found->bytes);
}

}  // namespace hfta::engine
