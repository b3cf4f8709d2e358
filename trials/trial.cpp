#include "trials/trial.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::trials {
namespace {
constexpr std::array<const char*, 5> kStateNames = {"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
}

const char* name_of(State state) { return kStateNames.at(static_cast<std::size_t>(state)); }

State state_from(const std::string& name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (name == kStateNames[i]) return static_cast<State>(i);
  }
  throw Error(ErrorKind::kStorage, "trial state: found '" + printable(name) + "', wanted one of Optuna's five");
}

const char* name_of(Goal goal) { return goal == Goal::kMinimize ? "minimize" : "maximize"; }

std::optional<double> first_of(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(values.front());
}

std::string to_text(const ParamValue& value) {
  struct Text {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return shortest(d); }
    std::string operator()(const std::string& s) const { return s; }
  };
  return std::visit(Text{}, value);
}

bool better(double a, double b, Goal goal) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return goal == Goal::kMinimize ? a < b : a > b;
}

const Params& latest_params(const Trial& trial) {
  return trial.copies.empty() ? trial.params : trial.copies.back().params;
}

std::optional<double> value_to_rank(const Trial& trial) {
  const std::optional<double> value = trial.value();
  const bool counts = trial.state == State::kComplete && trial.feasible && value && !std::isnan(*value);
  return counts ? value : std::nullopt;
}

const Trial* best_of(const std::vector<Trial>& trials, Goal goal) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    const std::optional<double> value = value_to_rank(trial);
    if (!value) continue;
    if (best == nullptr || better(*value, *best->value(), goal) ||
        (value == best->value() && trial.number < best->number)) {
      best = &trial;
    }
  }
  return best;
}

std::string_view why_none_is_best(const std::vector<Trial>& trials) {
  const auto is_complete = [](const Trial& trial) { return trial.state == State::kComplete; };
  const auto is_feasible = [&](const Trial& trial) { return is_complete(trial) && trial.feasible; };
  if (std::none_of(trials.begin(), trials.end(), is_complete)) return "no trial is COMPLETE";
  if (std::none_of(trials.begin(), trials.end(), is_feasible)) return "no COMPLETE trial meets its constraints";
  return "no COMPLETE trial has a value";
}

}  // namespace hfta::trials
