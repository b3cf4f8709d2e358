#include "engine/driver/trials/queue.hpp"

#include <algorithm>
#include <iterator>

namespace hfta::engine {

void ReadyQueue::push(int draw) {
  const TrialRecord& entry = table_.entry(draw);
  Line& line = lines_[entry.partition];
  if (line.size() > 0) remove(entry.partition, line);
  const double epochs = table_.epochs_to_target(draw);  // stays the same while it waits
  (entry.recorded > 0 ? line.resumed : line.fresh).emplace(draw, epochs);
  draws_.insert(draw);
  line.work += epochs;
  enter(entry.partition, line);
}

int ReadyQueue::front(const std::string& partition) const {
  const Line& line = lines_.at(partition);
  return line.resumed.empty() ? line.fresh.begin()->first : line.resumed.begin()->first;
}

int ReadyQueue::last_of(const std::string& partition, int count) const {
  const Line& line = lines_.at(partition);
  const int fresh = count - static_cast<int>(line.resumed.size());
  if (fresh <= 0) return std::next(line.resumed.begin(), count - 1)->first;
  const int last_fresh = std::next(line.fresh.begin(), fresh - 1)->first;
  return line.resumed.empty() ? last_fresh : std::max(last_fresh, line.resumed.rbegin()->first);
}

std::optional<std::string> ReadyQueue::first_entered() const {
  const auto found = std::find_if(ranked_.begin(), ranked_.end(),
                                  [this](const auto& line) { return front(line.second) < table_.entered(); });
  return found == ranked_.end() ? std::nullopt : std::optional(found->second);
}

void ReadyQueue::take(int draw) {
  const std::string& partition = table_.entry(draw).partition;
  Line& line = lines_.at(partition);
  remove(partition, line);
  std::map<int, double>& those = line.resumed.contains(draw) ? line.resumed : line.fresh;
  const auto place = those.find(draw);
  line.work -= place->second;
  those.erase(place);
  draws_.erase(draw);
  if (line.size() > 0) {
    enter(partition, line);
  } else {
    lines_.erase(partition);
  }
}

void ReadyQueue::enter(const std::string& partition, const Line& line) {
  ranked_.emplace(-line.work, partition);
  sizes_.insert(line.size());
  total_ += line.size();
  work_ += line.work;
}

void ReadyQueue::remove(const std::string& partition, const Line& line) {
  ranked_.erase({-line.work, partition});
  sizes_.erase(sizes_.find(line.size()));
  total_ -= line.size();
  work_ -= line.work;
}

int ReadyQueue::ready(const std::string& partition) const {
  const auto line = lines_.find(partition);
  return line == lines_.end() ? 0 : line->second.size();
}

double ReadyQueue::work(const std::string& partition) const {
  const auto line = lines_.find(partition);
  return line == lines_.end() ? 0 : line->second.work;
}

// Trials that have been trained before count as drawn earlier: only fresh ones can be later.
ReadyQueue::Waiting ReadyQueue::before(int draw, const std::string& partition) const {
  const auto found = lines_.find(partition);
  if (found == lines_.end()) return {};
  const Line& line = found->second;
  Waiting waiting{line.size(), line.work};
  for (auto later = line.fresh.rbegin(); later != line.fresh.rend() && later->first >= draw; ++later) {
    --waiting.trials;
    waiting.epochs -= later->second;
  }
  return waiting;
}

std::vector<std::string> ReadyQueue::richest(std::size_t count) const {
  std::vector<std::string> names;
  for (auto place = ranked_.begin(); place != ranked_.end() && names.size() < count; ++place) {
    names.push_back(place->second);
  }
  return names;
}

}  // namespace hfta::engine
