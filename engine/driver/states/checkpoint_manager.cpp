#include "engine/driver/states/checkpoint_manager.hpp"

#include <utility>

namespace hfta::engine {

using storage::Checkpoint;
using storage::StateKind;

CheckpointManager::CheckpointManager(storage::StudyStates& states, const StudyConfig& config,
                                     std::function<void()> settle)
    : states_(states), settle_(std::move(settle)), select_best_(config.select_best), kept_(config) {}

void CheckpointManager::begin(TrialTable& table) {
  for (const StateKind kind : storage::kStateKinds) of(kind).sweep();
  std::set<int> unfinished, copies;
  for (int draw = 0; draw < table.drawn(); ++draw) {
    const trials::Trial& t = table.trial(draw);
    if (table.entry(draw).phase == Phase::kDone) {
      (void)kept_.end(draw, t.number, t.state, t.values);
    } else {
      unfinished.insert(t.number);
      if (load_up_to(StateKind::kCopied, t.number, table.entry(draw).copied)) copies.insert(t.number);
    }
  }
  for (const int number : of(StateKind::kRunning).trials()) {
    unfinished.contains(number) ? (void)on_disk_.insert(number) : of(StateKind::kRunning).remove(number);
  }
  for (const int number : of(StateKind::kCopied).trials()) {
    copies.contains(number) ? (void)copied_.insert(number) : of(StateKind::kCopied).remove(number);
  }
  for (const int number : copied_) {  // a run was killed before it could remove them
    of(StateKind::kRunning).remove(number);
    of(StateKind::kFinished).remove(number);
    on_disk_.erase(number);
  }
  // A run that was killed may have left weights of a trial that was about to be COMPLETE, which now may end otherwise.
  for (const int number : of(StateKind::kFinished).trials()) {
    if (kept_.contains(number)) continue;
    select_best_&& unfinished.contains(number) ? (void)best_on_disk_.insert(number)
                                               : of(StateKind::kFinished).remove(number);
  }
}

void CheckpointManager::save(TrialRecord& entry, int number, const HeldState& state, WriteBatch& batch) {
  if (!entry.changed) return;
  if (select_best_ && entry.best_state) {
    batch.states.push_back({StateKind::kFinished, number, entry.value_epoch, entry.best_state});
    best_on_disk_.insert(number);
  }
  batch.states.push_back({StateKind::kRunning, number, entry.trained, state});
  on_disk_.insert(number);
  if (copied_.erase(number) > 0) batch.needless.emplace_back(StateKind::kCopied, number);
  entry.changed = false;
}

std::optional<Checkpoint> CheckpointManager::load_up_to(StateKind kind, int number, int epoch) {
  std::optional<Checkpoint> found = of(kind).load(number);
  while (found && found->epoch > epoch) {
    static_cast<void>(of(kind).discard(number, found->epoch));
    found = of(kind).load(number);
  }
  return found;
}

std::optional<StateKind> CheckpointManager::kind_on_disk(int number) const {
  if (copied_.contains(number)) return StateKind::kCopied;
  return on_disk_.contains(number) ? std::optional(StateKind::kRunning) : std::nullopt;
}

// Loads the newest state. A copied state without bytes says that there is none.
std::optional<Checkpoint> CheckpointManager::newest(const TrialRecord& entry, int number) {
  const std::optional<StateKind> kind = kind_on_disk(number);
  if (!kind) return std::nullopt;
  settle_();
  std::optional<Checkpoint> found = of(*kind).load(number);
  // A checkpoint of an epoch that the store does not know (a restored backup of the store) belongs to another history.
  const bool fits = found && found->epoch >= entry.copied && found->epoch <= entry.recorded && !found->bytes.empty();
  return fits ? std::move(found) : std::nullopt;
}

HeldState CheckpointManager::restore(TrialRecord& entry, int number) {
  if (entry.state) return entry.state;
  entry.trained = 0;
  entry.changed = false;
  while (std::optional<Checkpoint> found = newest(entry, number)) {
    if (has_best(entry, number, found->epoch)) {
      entry.trained = found->epoch;
      return std::make_shared<const SlotState>(std::move(found->bytes));
    }
    // The trial comes to its best weights again from a state before their epoch.
    if (!of(*kind_on_disk(number)).discard(number, found->epoch)) break;
  }
  return nullptr;
}

// Loads the weights that the trial's value was measured on, if a state after `epoch` epochs needs them; false: they are
// not on disk.
bool CheckpointManager::has_best(TrialRecord& entry, int number, int epoch) {
  if (!select_best_ || entry.best_state || entry.value_epoch == 0 || entry.value_epoch > epoch) return true;
  std::optional<Checkpoint> best = load_up_to(StateKind::kFinished, number, entry.value_epoch);
  if (!best || best->epoch != entry.value_epoch) return false;
  entry.best_state = std::make_shared<const SlotState>(std::move(best->bytes));
  return true;
}

std::optional<std::filesystem::path> CheckpointManager::discard(TrialRecord& entry, int number) {
  const std::optional<StateKind> kind = kind_on_disk(number);
  if (entry.changed || entry.trained == 0 || !kind) return std::nullopt;
  entry.best_state.reset();
  return of(*kind).discard(number, entry.trained);
}

void CheckpointManager::copy(const TrialRecord& entry, int number, const HeldState& state, WriteBatch& batch) {
  static const HeldState kNone = std::make_shared<const SlotState>();
  batch.kept.push_back({StateKind::kCopied, number, entry.copied, state ? state : kNone});
  batch.outdate(number, entry.copied);
  copied_.insert(number);
  on_disk_.erase(number);
  best_on_disk_.erase(number);
}

void CheckpointManager::keep(int draw, int number, const std::vector<double>& values, int epoch, const HeldState& state,
                             WriteBatch& batch) {
  end(draw, number, trials::State::kComplete, values, batch);
  if (kept_.contains(number)) batch.kept.push_back({StateKind::kFinished, number, epoch, state});
}

void CheckpointManager::give_up(int draw, int number, trials::State state, WriteBatch& batch) {
  end(draw, number, state, {}, batch);
}

void CheckpointManager::end(int draw, int number, trials::State state, const std::vector<double>& values,
                            WriteBatch& batch) {
  for (const int other : kept_.end(draw, number, state, values)) {
    if (other != number) batch.needless.emplace_back(StateKind::kFinished, other);
  }
}

void CheckpointManager::forget(int number, WriteBatch& batch) {
  if (on_disk_.erase(number) > 0) batch.needless.emplace_back(StateKind::kRunning, number);
  if (copied_.erase(number) > 0) batch.needless.emplace_back(StateKind::kCopied, number);
  if (best_on_disk_.erase(number) > 0 && !kept_.contains(number)) {
    batch.needless.emplace_back(StateKind::kFinished, number);
  }
}

std::optional<SlotState> CheckpointManager::finished_state(int number) {
  settle_();
  std::optional<Checkpoint> found = of(StateKind::kFinished).load(number);
  if (!found) return std::nullopt;
  return std::move(found->bytes);
}

}  // namespace hfta::engine
