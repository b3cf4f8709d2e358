// Reports as tables for people.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "engine/report/columns.hpp"
#include "engine/report/configurations.hpp"
#include "engine/report/confusion.hpp"
#include "engine/report/front.hpp"
#include "engine/report/report.hpp"
#include "engine/report/ways.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

using trials::Trial;

std::string counts_text(const std::map<std::string, int>& counts) {
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (const auto& [state, count] : counts) words.push_back(fmt::format("{} {}", count, printable(state)));
  return words.empty() ? "none" : join(words);
}

// The busiest device's time in training and evaluation. Devices work side by side, each at its own pace.
double training_seconds(const ReportInput& input) {
  std::map<int, std::string> device_of;  // by array
  for (const storage::ArrayRecord& array : input.arrays) device_of[array.array] = array.device;
  std::map<std::string, double> seconds;  // by device
  for (const storage::RoundRecord& round : input.rounds) seconds[device_of[round.array]] += round.seconds;
  double most = 0;
  for (const auto& [device, sum] : seconds) most = std::max(most, sum);
  return most;
}

std::vector<std::string> param_names(const std::vector<const Trial*>& rows) {
  std::vector<std::string> names;
  for (const Trial* trial : rows) {
    for (const auto& [name, value] : trial->params) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> row_of(const Trial& trial, const trials::Objectives& objectives,
                                const std::map<int, int>& fronts, const std::vector<std::string>& params) {
  std::string time = "-";
  if (trial.started && trial.completed) {
    const double seconds = std::chrono::duration<double>(*trial.completed - *trial.started).count();
    time = fmt::format("{:.1f}", std::max(0.0, seconds));
  }
  std::vector<std::string> cells = {std::to_string(trial.number), trials::name_of(trial.state)};
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const bool has_none = trial.state != trials::State::kRunning && trial.values.empty();
    const std::optional<double> value = has_none ? std::nullopt : latest_values(trial, objectives)[i];
    cells.push_back(value ? value_text(*value) : "-");
  }
  if (objectives.size() > 1) {
    const auto front = fronts.find(trial.number);
    cells.push_back(front != fronts.end() ? std::to_string(front->second) : "-");
  }
  cells.push_back(std::to_string(trial.epochs.empty() ? 0 : trial.epochs.back().epoch));
  cells.push_back(time);
  for (const std::string& name : params) {
    const trials::Params& latest = latest_params(trial);
    const auto found = std::find_if(latest.begin(), latest.end(), [&](const auto& p) { return p.first == name; });
    cells.push_back(found == latest.end() ? "-" : param_text(found->second));
  }
  return cells;
}

std::string best_text(const ReportInput& input) {
  if (input.objectives.size() > 1) return front_text(input);
  const Trial* best = best_of(input);
  if (best == nullptr) return fmt::format("best: none, {}\n", trials::why_none_is_best(input.trials));
  std::string text = fmt::format("best: {} {} (trial {}", printable(input.objectives.front().metric),
                                 value_text(*best->value()), best->number);
  if (!best->epochs.empty()) text += fmt::format(", {} epochs", best->epochs.back().epoch);
  text += fmt::format(")\n  with {}\n", params_text(latest_params(*best)));
  std::vector<std::string> words;
  for (const auto& [name, value] : split(best->test_metrics, input.objectives.front().metric).numbers) {
    words.push_back(printable(name) + " " + value_text(value));
  }
  if (!words.empty()) text += "  test: " + join(words) + "\n";
  return text + confusion_text(input, *best);
}

// The best value so far of the trials that have not failed, while some are RUNNING, if no COMPLETE one has it.
std::string best_so_far_text(const ReportInput& input) {
  const auto running = [](const Trial& trial) { return trial.state == trials::State::kRunning; };
  if (input.repetitions.any()) return "";  // a single repetition's value says little
  if (input.objectives.size() > 1) return "";
  if (std::none_of(input.trials.begin(), input.trials.end(), running)) return "";
  const Trial* best = trials::best_of(input.trials, input.objectives.front().goal);
  double value = best != nullptr ? *best->value() : std::nan("");  // anything is better than NaN
  const Trial* found = nullptr;
  for (const Trial& trial : input.trials) {
    if (trial.state == trials::State::kFail || trial.state == trials::State::kComplete || trial.epochs.empty())
      continue;
    const double now = latest_value(trial, input.objectives).value_or(std::nan(""));
    if (!std::isfinite(now) || !trials::better(now, value, input.objectives.front().goal)) continue;
    found = &trial;
    value = now;
  }
  if (found == nullptr) return "";
  return fmt::format("best so far: {} {} (trial {}, {}, {} epochs)\n  with {}\n",
                     printable(input.objectives.front().metric), value_text(value), found->number,
                     trials::name_of(found->state), found->epochs.back().epoch, params_text(latest_params(*found)));
}

std::string ending_text(const ReportInput& input) {
  if (input.ended_by.empty()) return "";
  const auto running = std::count_if(input.trials.begin(), input.trials.end(),
                                     [](const Trial& trial) { return trial.state == trials::State::kRunning; });
  return fmt::format("ended by {}; {} trial{} not done\n", printable(input.ended_by), running,
                     running == 1 ? " is" : "s are");
}

std::string runner_text(const ReportInput& input) {
  if (!input.runner) return "";
  const Runner& runner = *input.runner;
  if (!runner.silence) return fmt::format("runner: none; the last was {}\n", printable(runner.holder));
  return fmt::format("runner: {}, {}, last heartbeat {} ago\n", printable(runner.holder),
                     runner.alive ? "alive" : "not alive", duration_text(*runner.silence));
}

// Why trials failed: each reason once, without the epoch that makes its texts differ.
std::string failures_text(const std::vector<Trial>& trials) {
  std::map<std::string, int> reasons;
  for (const Trial& trial : trials) {
    if (trial.state == trials::State::kFail && !trial.reason.empty()) {
      ++reasons[printable(trial.reason.substr(0, trial.reason.find(" at epoch ")))];
    }
  }
  std::vector<std::string> words;
  words.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) words.push_back(fmt::format("{} ({})", reason, count));
  return words.empty() ? "" : "failed: " + join(words, "; ") + "\n";
}

}  // namespace

std::string report_table(const ReportInput& input, int top) {
  std::size_t epochs = 0;
  for (const Trial& trial : input.trials) epochs += trial.epochs.size();
  std::string out = fmt::format("study {}: {}\n", printable(input.study), objectives_text(input.objectives));
  out += fmt::format("trials: {} ({}); {} trial-epochs, trained for {}\n", input.trials.size(),
                     counts_text(count_states(input.trials)), epochs, duration_text(training_seconds(input)));
  if (!input.method_reason.empty()) {
    out +=
        fmt::format("method: {}, chosen by auto because {}\n", printable(input.method), printable(input.method_reason));
  }
  out += ending_text(input) + runner_text(input) + failures_text(input.trials) + best_text(input) +
         best_so_far_text(input) + configurations_text(input, top);
  std::vector<const Trial*> rows = ranked(input.trials, input.objectives);
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(std::max(top, 0))));
  const std::string use = occupancy_text(input.occupancy) + ways_text(ways_that_ran(input.arrays));
  if (rows.empty()) return out + use;
  const std::vector<std::string> params = param_names(rows);
  std::vector<std::string> header = {"trial", "state"};
  for (const trials::Objective& objective : input.objectives) header.push_back(printable(objective.metric));
  if (input.objectives.size() > 1) header.emplace_back("front");
  header.insert(header.end(), {"epochs", "time [s]"});
  for (const std::string& name : params) header.push_back(printable(name));
  std::vector<std::vector<std::string>> cells;
  cells.reserve(rows.size());
  const std::map<int, int> fronts = fronts_by_number(input);
  for (const Trial* trial : rows) cells.push_back(row_of(*trial, input.objectives, fronts, params));
  out += "\n" + in_columns(header, cells);
  if (rows.size() < input.trials.size()) {
    out += fmt::format("({} more; --top shows more of them, --format json all)\n", input.trials.size() - rows.size());
  }
  return out + use;
}

std::string studies_table(const std::vector<storage::StudySummary>& studies) {
  if (studies.empty()) return "no studies\n";
  std::vector<std::vector<std::string>> rows;
  for (const storage::StudySummary& s : studies) {
    const std::string changed =
        s.last_change
            ? fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(*s.last_change)))
            : "-";
    rows.push_back({printable(s.name), objectives_text(s.objectives), s.best ? value_text(*s.best) : "-",
                    counts_text(s.counts), changed});
  }
  return in_columns({"study", "goal", "best", "trials", "last change [UTC]"}, rows);
}

}  // namespace hfta::engine
