#include "engine/driver/packer.hpp"

#include <algorithm>
#include <limits>

#include "engine/driver/widths.hpp"

namespace hfta::engine {
namespace {
constexpr int kAhead = 4;  // widths per device that draws run ahead, so that rare partitions fill arrays too
constexpr int kWidest = 1 << 20;
}  // namespace

Packer::Packer(std::vector<Trainer*> trainers, std::optional<int> width, int first_array, Ledger& ledger,
               ReadyQueue& queue, Keeper& keeper, const Clock& clock, DrawMore draw_more)
    : trainers_(std::move(trainers)),
      arrays_(trainers_.size()),
      width_(width),
      next_array_(first_array),
      ledger_(ledger),
      queue_(queue),
      keeper_(keeper),
      clock_(clock),
      draw_more_(std::move(draw_more)) {}

bool Packer::any_open() const {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const auto& array) { return array != nullptr; });
}

void Packer::prepare(storage::Changes& changes) {
  bool idle = false;
  for (auto& array : arrays_) {
    if (array) fill(*array, changes);
    if (array && array->occupied() == 0) array.reset();
    idle = idle || !array;
  }
  for (std::size_t device = 0; device < arrays_.size() && !idle; ++device) {
    if (!worth_leaving(*arrays_[device])) continue;
    leave(device);
    idle = true;
  }
  open_idle(changes);
  for (std::size_t device = 0; device < arrays_.size(); ++device) {
    if (arrays_[device]) fit(device, changes);
  }
}

void Packer::reopen(int id, const std::string& partition, int width, const std::vector<std::pair<int, int>>& trials) {
  const auto place = std::find(arrays_.begin(), arrays_.end(), nullptr);
  const bool any = !trials.empty() || queue_.ready(partition) > 0;
  if (place == arrays_.end() || !any) {
    for (const auto& [slot, draw] : trials) queue_.push(draw);
    return;
  }
  const auto device = static_cast<std::size_t>(place - arrays_.begin());
  const int some = trials.empty() ? queue_.front(partition) : trials.front().second;
  if (limit(device, partition, some) < width) {
    for (const auto& [slot, draw] : trials) queue_.push(draw);
    return;
  }
  const trials::Params& params = ledger_.trial(some).params;
  *place = std::make_unique<OpenArray>(id, partition, width,
                                       trainers_[device]->open(params, width, expected_epochs(partition)));
  for (const auto& [slot, draw] : trials) (*place)->start(slot, draw, ledger_);
}

// Hyperband's rungs wait for all of a bracket, so its trials are drawn at once; others as arrays need them.
int Packer::ahead() const {
  if (ledger_.scheduler().capacity()) return std::numeric_limits<int>::max();
  return kAhead * widest_ * static_cast<int>(trainers_.size());
}

void Packer::supply(const std::string& partition, int wanted) {
  while (queue_.ready(partition) < wanted && queue_.ready() < ahead() && draw_more_()) {
  }
}

void Packer::fill(OpenArray& array, storage::Changes& changes) {
  supply(array.partition(), array.width() - array.occupied());
  for (int slot = array.free_slot(); slot != OpenArray::kEmpty && queue_.ready(array.partition()) > 0;
       slot = array.free_slot()) {
    const int draw = queue_.pop(array.partition());
    trials::Trial& trial = ledger_.trial(draw);
    keeper_.restore(ledger_.entry(draw), trial.number);
    array.start(slot, draw, ledger_);
    if (trial.started) continue;
    trial.started = clock_.utc();
    changes.started.emplace_back(trial.number, *trial.started);
  }
}

void Packer::open_idle(storage::Changes& changes) {
  int idle = static_cast<int>(std::count(arrays_.begin(), arrays_.end(), nullptr));
  for (std::size_t device = 0; device < arrays_.size(); ++device) {
    if (arrays_[device]) continue;
    while (queue_.ready() < ahead() && draw_more_()) {
    }
    const std::vector<std::string> partitions = queue_.fullest_first();
    if (partitions.empty()) return;
    const int count = static_cast<int>(partitions.size());
    open(device, partitions.front(), (idle + count - 1) / count, changes);
    --idle;
  }
}

void Packer::open(std::size_t device, const std::string& partition, int parts, storage::Changes& changes) {
  const int most = limit(device, partition, queue_.front(partition));
  supply(partition, most * parts);
  const int waiting = queue_.ready(partition);
  const int width = ledger_.can_draw() ? std::min(most, waiting) : even_width(waiting, most, parts);
  const trials::Params& params = ledger_.trial(queue_.front(partition)).params;
  arrays_[device] = std::make_unique<OpenArray>(next_array_++, partition, width,
                                                trainers_[device]->open(params, width, expected_epochs(partition)));
  fill(*arrays_[device], changes);
}

void Packer::fit(std::size_t device, storage::Changes& changes) {
  OpenArray& array = *arrays_[device];
  const int wanted = array.occupied() + queue_.ready(array.partition());
  int some = 0;
  while (array.draw_in(some) == OpenArray::kEmpty) ++some;
  const std::optional<int> width =
      better_width(array.width(), wanted, limit(device, array.partition(), array.draw_in(some)));
  if (!width) return;
  array.resize(*width, ledger_);
  fill(array, changes);
}

// A nearly empty array is left for a fuller one if its trials will have company later: paused trials of the same
// partition wait for verdicts that others have to bring about. States move bit for bit, so only time is at stake.
bool Packer::worth_leaving(const OpenArray& array) const {
  if (queue_.ready(array.partition()) > 0) return false;
  const std::vector<std::string> others = queue_.fullest_first();
  if (others.empty() || queue_.ready(others.front()) < 2 * array.occupied()) return false;
  for (int draw = 0; draw < ledger_.drawn(); ++draw) {
    const Entry& entry = ledger_.entry(draw);
    if (entry.phase == Phase::kPaused && entry.partition == array.partition()) return true;
  }
  return false;
}

void Packer::leave(std::size_t device) {
  OpenArray& array = *arrays_[device];
  for (int slot = 0; slot < array.width(); ++slot) {
    const int draw = array.draw_in(slot);
    if (draw == OpenArray::kEmpty) continue;
    ledger_.entry(draw).state = array.extract(slot);
    array.clear(slot);
    queue_.push(draw);
  }
  arrays_[device].reset();
}

int Packer::limit(std::size_t device, const std::string& partition, int draw) {
  const auto known = limits_.find({device, partition});
  if (known != limits_.end()) return known->second;
  const int wanted = width_ ? *width_ : trainers_[device]->plan(ledger_.trial(draw).params).width;
  const int most = std::clamp(wanted, 1, kWidest);
  widest_ = std::max(widest_, most);
  return limits_[{device, partition}] = most;
}

// The partition's share of all that is left, by what is ready now.
double Packer::expected_epochs(const std::string& partition) const {
  const double ready = queue_.work();
  const double left = static_cast<double>(ledger_.epochs_left().value_or(0));
  return ready > 0 ? std::max(queue_.work(partition), left * queue_.work(partition) / ready) : 0;
}

}  // namespace hfta::engine
