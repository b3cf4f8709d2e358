#include "engine/driver/trials/numbering.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace hfta::engine {
namespace {

constexpr double kAheadSeconds = 60;
constexpr double kBetweenTries = 1;  // seconds, to add trials to a store that is locked

}  // namespace

Numbering::Numbering(TrialTable& table, StudyWriter& writer, const Clock& clock, const std::atomic<int>& stop,
                     WriteBatch& batch, std::function<bool()> can_train)
    : table_(table), writer_(writer), clock_(clock), stop_(stop), batch_(batch), can_train_(std::move(can_train)) {}

bool Numbering::enter(int draw) {
  if (draw < table_.entered()) return true;
  if (is_locked() && can_train_()) return false;
  while (!try_to_enter(draw)) {
    if (stop_.load() != 0 || can_train_()) return false;
  }
  return true;
}

bool Numbering::enter_or_stop(int draw) {
  while (!try_to_enter(draw)) {
    if (stop_.load() != 0) return false;
  }
  return true;
}

bool Numbering::try_to_enter(int draw) {
  if (table_.entered() > draw) return true;
  std::vector<storage::NewTrial> added;
  for (int next = table_.entered(); next <= draw; ++next) {
    added.push_back({table_.trial(next).params, table_.trial(next).seen_rounds});
  }
  std::optional<std::vector<int>> numbers;
  if (!table_.learns() || write_results()) numbers = writer_.add_trials(added, clock_.utc());
  asked(numbers.has_value());
  if (numbers) table_.enter(*numbers);
  return numbers.has_value();
}

void Numbering::asked(bool answered) { ask_store_at_ = answered ? 0 : clock_.seconds() + kBetweenTries; }

// A draw that follows from results is not in the store before they are. False: another program locks the store.
bool Numbering::write_results() {
  writer_.add(std::exchange(batch_, {}));
  return writer_.try_flush();
}

// A store that is locked for a minute must keep no slot empty, so the trials that are to begin within that have their
// rows already. No more than that: what is in the store cannot make room for an enqueued one.
void Numbering::enter_ahead(double rate) {
  if (table_.learns() || is_locked()) return;
  const double trials = std::min(1e6, std::ceil(rate * kAheadSeconds / table_.mean_epochs()));
  (void)try_to_enter(std::min(table_.drawn(), table_.begun() + static_cast<int>(trials)) - 1);
}

}  // namespace hfta::engine
