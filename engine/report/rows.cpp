#include "engine/report/rows.hpp"

#include <algorithm>
#include <chrono>

#include "engine/report/confusion.hpp"

namespace hfta::engine {

using trials::Trial;

std::vector<const Trial*> chosen(const ReportInput& input, std::optional<int> top) {
  if (!top) {
    std::vector<const Trial*> all;
    for (const Trial& trial : input.trials) all.push_back(&trial);
    return all;
  }
  std::vector<const Trial*> best = ranked(input.trials, input.objectives);
  best.resize(std::min(best.size(), static_cast<std::size_t>(std::max(*top, 0))));
  return best;
}

// Wall clocks may jump back; a duration never does.
std::optional<double> duration(const Trial& trial) {
  if (!trial.started || !trial.completed) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(*trial.completed - *trial.started).count());
}

int last_epoch(const Trial& trial) { return trial.epochs.empty() ? 0 : trial.epochs.back().epoch; }

std::map<std::string, double> last_metrics(const ReportInput& input, const Trial& trial) {
  if (trial.epochs.empty()) return {};
  const std::string& metric = input.objectives.front().metric;
  std::map<std::string, double> last = split(trial.epochs.back().metrics, metric).numbers;
  if (input.objectives.size() > 1) last.merge(split(trial.test_metrics, metric).numbers);
  return last;
}

}  // namespace hfta::engine
