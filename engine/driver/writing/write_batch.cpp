#include "engine/driver/writing/write_batch.hpp"

#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace hfta::engine {
namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void append(storage::Changes& to, storage::Changes& from) {
  append(to.started, from.started);
  append(to.epochs, from.epochs);
  append(to.copies, from.copies);
  append(to.states, from.states);
  append(to.arrays, from.arrays);
  append(to.occupancy, from.occupancy);
  append(to.rounds, from.rounds);
  to.test_metrics.merge(from.test_metrics);
  if (from.progress) to.progress = std::move(from.progress);
}

// A trial's finished state comes first: the running one cannot be used without it.
std::tuple<int, bool, storage::StateKind> place_of(storage::StateKind kind, int number) {
  return {number, kind != storage::StateKind::kFinished, kind};
}

// A state that a later one follows, or whose trial has ended since, need not be written.
void append_states(WriteBatch& to, WriteBatch& from) {
  using storage::StateKind;
  std::map<std::tuple<int, bool, StateKind>, WriteBatch::File> last;
  for (std::vector<WriteBatch::File>* states : {&to.states, &from.states}) {
    for (WriteBatch::File& file : *states) last[place_of(file.kind, file.number)] = std::move(file);
  }
  for (const auto& [kind, number] : to.needless) {
    if (kind != StateKind::kRunning) continue;
    last.erase(place_of(StateKind::kRunning, number));
    last.erase(place_of(StateKind::kFinished, number));
  }
  to.states.clear();
  for (auto& [place, file] : last) to.states.push_back(std::move(file));
}

}  // namespace

void WriteBatch::outdate(int number, int epoch) {
  std::erase_if(states, [=](const File& file) { return file.number == number; });
  std::erase(needless, std::pair(storage::StateKind::kCopied, number));
  outdated.emplace_back(number, epoch);
}

void WriteBatch::append(WriteBatch later) {
  engine::append(kept, later.kept);
  engine::append(changes, later.changes);
  for (const auto& [number, epoch] : later.outdated) outdate(number, epoch);
  engine::append(needless, later.needless);
  append_states(*this, later);
  engine::append(events, later.events);
}

bool WriteBatch::empty() const {
  return kept.empty() && changes.empty() && outdated.empty() && states.empty() && needless.empty() && events.empty();
}

}  // namespace hfta::engine
