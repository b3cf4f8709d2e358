#include "engine/driver/budget.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace hfta::engine {

bool ends_early(const StudyConfig& config) {
  return config.budget.seconds || config.budget.epochs || config.target.has_value();
}

std::string end_of(const StudyConfig& config, const Used& used) {
  if (config.target && used.best && !trials::better(*config.target, *used.best, config.objectives.front().goal)) {
    return fmt::format("its target: {} {} is reached", printable(config.objectives.front().metric),
                       shortest(*config.target));
  }
  if (config.budget.epochs && used.epochs >= *config.budget.epochs) {
    return fmt::format("its budget of {} trial-epochs", *config.budget.epochs);
  }
  if (config.budget.seconds && used.seconds >= *config.budget.seconds) {
    return fmt::format("its budget of {:.6g} hours", *config.budget.seconds / 3600);
  }
  return "";
}

}  // namespace hfta::engine
