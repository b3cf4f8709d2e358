#include "engine/driver/queue.hpp"

#include <algorithm>
#include <tuple>

namespace hfta::engine {

void ReadyQueue::push(int draw) {
  Entry& entry = ledger_.entry(draw);
  entry.phase = Phase::kReady;
  Line& line = lines_[entry.partition];
  (entry.recorded > 0 ? line.resumed : line.fresh).insert(draw);
  ++total_;
}

int ReadyQueue::front(const std::string& partition) const {
  const Line& line = lines_.at(partition);
  return line.resumed.empty() ? *line.fresh.begin() : *line.resumed.begin();
}

int ReadyQueue::pop(const std::string& partition) {
  const int draw = front(partition);
  Line& line = lines_.at(partition);
  if (line.resumed.erase(draw) == 0) line.fresh.erase(draw);
  if (line.resumed.empty() && line.fresh.empty()) lines_.erase(partition);
  --total_;
  return draw;
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

std::vector<std::string> ReadyQueue::fullest_first() const {
  std::vector<std::tuple<int, double, std::string>> order;
  for (const auto& [partition, line] : lines_) order.emplace_back(-ready(partition), -work(partition), partition);
  std::sort(order.begin(), order.end());
  std::vector<std::string> partitions;
  for (const auto& place : order) partitions.push_back(std::get<std::string>(place));
  return partitions;
}

}  // namespace hfta::engine
