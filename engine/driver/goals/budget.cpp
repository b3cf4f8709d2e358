#include "engine/driver/goals/budget.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace hfta::engine {
namespace {

// A duration in a suitable unit: "90 seconds", "1.5 hours".
std::string time_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds >= kHour) return fmt::format("{:.6g} hours", seconds / kHour);
  if (seconds > 2 * kMinute) return fmt::format("{:.6g} minutes", seconds / kMinute);
  return fmt::format("{:.6g} seconds", seconds);
}

}  // namespace

bool ends_early(const StudyConfig& config) {
  return config.budget.seconds || config.budget.epochs || config.target.has_value();
}

bool is_out_of_time(const StudyConfig& config, double seconds) {
  return config.budget.seconds && seconds >= *config.budget.seconds;
}

std::string end_of(const StudyConfig& config, const Used& used) {
  if (config.target && used.best && !trials::better(*config.target, *used.best, config.objectives.front().goal)) {
    return fmt::format("its target: {} {} is reached", printable(config.objectives.front().metric),
                       shortest(*config.target));
  }
  if (config.budget.epochs && used.epochs >= *config.budget.epochs) {
    return fmt::format("its budget of {} trial-epochs", *config.budget.epochs);
  }
  if (is_out_of_time(config, used.seconds)) {
    return "its budget of " + time_text(*config.budget.seconds);
  }
  return "";
}

}  // namespace hfta::engine
