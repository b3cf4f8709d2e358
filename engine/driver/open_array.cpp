#include "engine/driver/open_array.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hfta::engine {

OpenArray::OpenArray(int id, std::string partition, int width, std::unique_ptr<TrainerArray> array)
    : id_(id),
      partition_(std::move(partition)),
      array_(std::move(array)),
      slots_(static_cast<std::size_t>(width), kEmpty) {}

int OpenArray::occupied() const {
  return static_cast<int>(std::count_if(slots_.begin(), slots_.end(), [](int draw) { return draw != kEmpty; }));
}

std::vector<int> OpenArray::draws() const {
  std::vector<int> those;
  std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(those), [](int draw) { return draw != kEmpty; });
  return those;
}

int OpenArray::some_draw() const {
  return *std::find_if(slots_.begin(), slots_.end(), [](int draw) { return draw != kEmpty; });
}

int OpenArray::free_slot() const {
  const auto found = std::find(slots_.begin(), slots_.end(), kEmpty);
  return found == slots_.end() ? kEmpty : static_cast<int>(found - slots_.begin());
}

void OpenArray::start(int slot, int draw, const HeldState& state, TrialTable& ledger) {
  if (!state) ledger.entry(draw).trained = 0;
  const Identity whom = ledger.identity(draw);
  if (state) {
    array_->insert(slot, whom.number, *whom.params, *state);
  } else {
    array_->admit(slot, whom.number, *whom.params);
  }
  ledger.seat(draw);
  slots_.at(static_cast<std::size_t>(slot)) = draw;
}

int OpenArray::slot_of(int draw) const {
  const auto found = std::find(slots_.begin(), slots_.end(), draw);
  return found == slots_.end() ? kEmpty : static_cast<int>(found - slots_.begin());
}

void OpenArray::follow(int slot, TrialTable& ledger) {
  const int draw = draw_in(slot);
  const Identity whom = ledger.identity(draw);
  if (whom == identity_of(ledger.trials(), draw, ledger.entry(draw).trained - 1)) return;
  const SlotState state = array_->extract(slot);
  array_->clear(slot);
  array_->insert(slot, whom.number, *whom.params, state);
}

void OpenArray::clear(int slot) {
  array_->clear(slot);
  slots_.at(static_cast<std::size_t>(slot)) = kEmpty;
}

void OpenArray::resize(int width, TrialTable& ledger) {
  for (int slot = width; slot < this->width(); ++slot) {
    const int draw = draw_in(slot);
    if (draw == kEmpty) continue;
    const Identity whom = ledger.identity(draw);
    const SlotState state = array_->extract(slot);
    clear(slot);
    const int lower = free_slot();
    array_->insert(lower, whom.number, *whom.params, state);
    slots_.at(static_cast<std::size_t>(lower)) = draw;
  }
  array_->resize(width);
  slots_.resize(static_cast<std::size_t>(width), kEmpty);
}

bool OpenArray::change_threads() {
  if (borrowed_ == lent_) return false;
  array_->borrow(lent_);
  borrowed_ = lent_;
  return true;
}

std::optional<storage::ArrayRecord> OpenArray::take_changes() {
  const ArrayInfo info = array_->info();
  const bool same = known_ && known_->width == info.width && known_->chunk == info.chunk &&
                    known_->threads == info.threads && known_->choices_json == info.choices_json;
  if (same) return std::nullopt;
  known_ = info;
  return storage::ArrayRecord{id_, info.device, partition_, info.width, info.chunk, info.threads, info.choices_json};
}

}  // namespace hfta::engine
