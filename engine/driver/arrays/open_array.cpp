#include "engine/driver/arrays/open_array.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"

namespace hfta::engine {

OpenArray::OpenArray(int id, std::string partition, int width, std::unique_ptr<TrainerArray> array)
    : id_(id),
      partition_(std::move(partition)),
      array_(std::move(array)),
      device_(array_->info().device),
      can_borrow_(array_->can_borrow()),
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

template <typename Call>
void OpenArray::attempt(const Call& call) {
  if (failure_) return;
  try {
    call();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice && error.kind() != ErrorKind::kMemory) throw;
    failure_ = std::current_exception();
  }
}

void OpenArray::start(int slot, int draw, const HeldState& state, TrialTable& table) {
  check();
  if (!state) table.entry(draw).trained = 0;
  const Identity whom = table.identity(draw);
  if (state) {
    array_->insert(slot, whom.number, *whom.params, *state);
  } else {
    array_->admit(slot, whom.number, *whom.params);
  }
  table.seat(draw);
  slots_.at(static_cast<std::size_t>(slot)) = draw;
}

void OpenArray::restart(int slot, int draw, const HeldState& state, TrialTable& table) {
  attempt([&] { start(slot, draw, state, table); });
}

HeldState OpenArray::extract(int slot) {
  HeldState state;
  attempt([&] { state = std::make_shared<const SlotState>(array_->extract(slot)); });
  return state;
}

int OpenArray::slot_of(int draw) const {
  const auto found = std::find(slots_.begin(), slots_.end(), draw);
  return found == slots_.end() ? kEmpty : static_cast<int>(found - slots_.begin());
}

void OpenArray::follow(int slot, TrialTable& table) {
  const int draw = draw_in(slot);
  const Identity whom = table.identity(draw);
  if (whom == identity_of(table.trials(), draw, table.entry(draw).trained - 1)) return;
  attempt([&] {
    const SlotState state = array_->extract(slot);
    array_->clear(slot);
    array_->insert(slot, whom.number, *whom.params, state);
  });
}

void OpenArray::clear(int slot) {
  attempt([&] { array_->clear(slot); });
  slots_.at(static_cast<std::size_t>(slot)) = kEmpty;
}

void OpenArray::resize(int width, TrialTable& table) {
  check();
  for (int slot = width; slot < this->width(); ++slot) {
    const int draw = draw_in(slot);
    if (draw == kEmpty) continue;
    const Identity whom = table.identity(draw);
    const int lower = free_slot();
    array_->insert(lower, whom.number, *whom.params, array_->extract(slot));
    slots_.at(static_cast<std::size_t>(lower)) = draw;
    slots_.at(static_cast<std::size_t>(slot)) = kEmpty;
    array_->clear(slot);
  }
  array_->resize(width);
  slots_.resize(static_cast<std::size_t>(width), kEmpty);
}

bool OpenArray::change_threads() {
  check();
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
