#include "engine/driver/queue.hpp"

namespace hfta::engine {

void ReadyQueue::push(int draw) {
  const Entry& entry = ledger_.entry(draw);
  Line& line = lines_[entry.partition];
  (entry.recorded > 0 ? line.resumed : line.fresh).insert(draw);
  ++total_;
}

int ReadyQueue::front(const std::string& partition) const {
  const Line& line = lines_.at(partition);
  return line.resumed.empty() ? *line.fresh.begin() : *line.resumed.begin();
}

void ReadyQueue::take(int draw) {
  const std::string& partition = ledger_.entry(draw).partition;
  Line& line = lines_.at(partition);
  if (line.resumed.erase(draw) == 0) line.fresh.erase(draw);
  if (line.resumed.empty() && line.fresh.empty()) lines_.erase(partition);
  --total_;
}

int ReadyQueue::ready(const std::string& partition) const {
  const auto line = lines_.find(partition);
  return line == lines_.end() ? 0 : static_cast<int>(line->second.resumed.size() + line->second.fresh.size());
}

double ReadyQueue::work(const std::string& partition) const {
  const auto line = lines_.find(partition);
  if (line == lines_.end()) return 0;
  double epochs = 0;
  for (const int draw : line->second.resumed) epochs += ledger_.epochs_to_target(draw);
  for (const int draw : line->second.fresh) epochs += ledger_.epochs_to_target(draw);
  return epochs;
}

double ReadyQueue::work() const {
  double epochs = 0;
  for (const auto& [partition, line] : lines_) epochs += work(partition);
  return epochs;
}

std::vector<std::string> ReadyQueue::partitions() const {
  std::vector<std::string> all;
  for (const auto& [partition, line] : lines_) all.push_back(partition);
  return all;
}

}  // namespace hfta::engine
