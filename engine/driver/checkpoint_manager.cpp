#include "engine/driver/checkpoint_manager.hpp"

#include <algorithm>
#include <utility>

namespace hfta::engine {

BestTrials::BestTrials(int keep, trials::Goal goal) : most_(static_cast<std::size_t>(std::max(keep, 1))), goal_(goal) {}

std::optional<int> BestTrials::add(int number, double value) {
  const auto worse = std::find_if(best_.begin(), best_.end(), [&](const Kept& kept) {
    return trials::better(value, kept.value, goal_) || (value == kept.value && number < kept.number);
  });
  best_.insert(worse, {value, number});
  if (best_.size() <= most_) return std::nullopt;
  const int surpassed = best_.back().number;
  best_.pop_back();
  return surpassed;
}

bool BestTrials::contains(int number) const {
  return std::any_of(best_.begin(), best_.end(), [&](const Kept& kept) { return kept.number == number; });
}

std::vector<int> BestTrials::numbers() const {
  std::vector<int> all;
  for (const Kept& kept : best_) all.push_back(kept.number);
  return all;
}

CheckpointManager::CheckpointManager(storage::Checkpoints& running, storage::Checkpoints& finished,
                                     const StudyConfig& config, std::function<void()> settle)
    : running_(running),
      finished_(finished),
      settle_(std::move(settle)),
      select_best_(config.select_best),
      best_(config.keep, config.goal) {}

void CheckpointManager::begin(TrialTable& ledger) {
  running_.sweep();
  finished_.sweep();
  std::set<int> unfinished;
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    const trials::Trial& t = ledger.trial(draw);
    if (ledger.entry(draw).phase != Phase::kDone) unfinished.insert(t.number);
    if (t.state == trials::State::kComplete && t.value) (void)best_.add(t.number, *t.value);
  }
  for (const int number : running_.trials()) {
    unfinished.contains(number) ? (void)on_disk_.insert(number) : running_.remove(number);
  }
  // A run that was killed may have left weights of a trial that was about to be COMPLETE, which now may end otherwise.
  for (const int number : finished_.trials()) {
    if (best_.contains(number)) continue;
    select_best_&& unfinished.contains(number) ? (void)best_on_disk_.insert(number) : finished_.remove(number);
  }
}

void CheckpointManager::save(TrialRecord& entry, int number, const HeldState& state, WriteBatch& page) {
  if (!entry.changed) return;
  if (select_best_ && entry.best_state) {
    page.states.push_back({true, number, entry.value_epoch, entry.best_state});
    best_on_disk_.insert(number);
  }
  page.states.push_back({false, number, entry.trained, state});
  on_disk_.insert(number);
  entry.changed = false;
}

HeldState CheckpointManager::restore(TrialRecord& entry, int number) {
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
    while (best && best->epoch > entry.value_epoch) {  // written by a run that was killed in front of its transaction
      static_cast<void>(finished_.discard(number, best->epoch));
      best = finished_.load(number);
    }
    if (!best || best->epoch != entry.value_epoch) return nullptr;
    entry.best_state = std::make_shared<const SlotState>(std::move(best->bytes));
  }
  entry.trained = found->epoch;
  return std::make_shared<const SlotState>(std::move(found->bytes));
}

std::optional<std::filesystem::path> CheckpointManager::discard(TrialRecord& entry, int number) {
  if (entry.changed || entry.trained == 0 || !on_disk_.contains(number)) return std::nullopt;
  entry.best_state.reset();
  return running_.discard(number, entry.trained);
}

void CheckpointManager::keep(int number, double value, int epoch, const HeldState& state, WriteBatch& page) {
  const std::optional<int> surpassed = best_.add(number, value);
  if (surpassed == number) return;
  page.kept.push_back({true, number, epoch, state});
  if (surpassed) page.surpassed.push_back(*surpassed);
}

void CheckpointManager::forget(int number, WriteBatch& page) {
  if (on_disk_.erase(number) > 0) page.needless.push_back(number);
  if (best_on_disk_.erase(number) > 0 && !best_.contains(number)) page.surpassed.push_back(number);
}

std::optional<SlotState> CheckpointManager::finished_state(int number) {
  settle_();
  std::optional<storage::Checkpoint> found = finished_.load(number);
  if (!found) return std::nullopt;
  return std::move(found->bytes);
}

}  // namespace hfta::engine
