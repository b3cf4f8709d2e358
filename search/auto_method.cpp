#include "search/auto_method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "search/sampler/restricted.hpp"

namespace hfta::search {
namespace {

constexpr double kMostForGp = 1000;  // configurations: a draw of gp takes a tenth of a second behind so many
constexpr int kStartup = 10;         // configurations that methods draw before they learn
constexpr int kFewEpochs = 4;        // fewer leave nothing to save
constexpr int kCurve = 10;           // epochs of a learning curve that can be forecast
constexpr double kStoppedShare = 5;  // configurations that asha tries in the epochs of one that is trained to its end

// Whether trials shall be stopped: a budget of epochs or time pays for other trials with what is saved; run_cap does
// not.
bool is_stopped(const StudyOutline& study) {
  return !study.stops && !study.configurations && study.epochs >= kFewEpochs && study.objectives == 1;
}

// Number of configurations that the study will draw, as far as its limits tell.
std::optional<double> expected(const StudyOutline& study) {
  std::optional<double> count;
  if (study.configurations) count = *study.configurations;
  if (!study.trial_epochs) return count;
  const double share = is_stopped(study) || study.stops ? kStoppedShare : 1;
  const double whole = static_cast<double>(study.epochs) * std::max(1, study.repetitions);
  const double afford = std::ceil(share * static_cast<double>(*study.trial_epochs) / whole);
  return count ? std::min(*count, afford) : afford;
}

struct Rule {
  const char* method;
  /// Why this method is chosen; "" if it is not.
  std::string (*reason)(const StudyOutline& study);
  bool paces = false;  ///< The method says itself how long trials train.
};

std::string all_fit(const StudyOutline& study) {
  const std::optional<std::int64_t> size = grid_size(study.space, study.constraints);
  if (!size || !study.configurations || *size > *study.configurations) return "";
  return fmt::format("the space has {} configuration{}, and run_cap has room for all of them", *size,
                     *size == 1 ? "" : "s");
}

std::string nothing_to_learn(const StudyOutline& study) {
  const std::optional<double> count = expected(study);
  if (!count) return "";
  if (*count <= kStartup) return fmt::format("{:.0f} configurations are too few to learn from", *count);
  const double side_by_side = std::floor(static_cast<double>(study.width.value_or(0)) / std::max(1, study.repetitions));
  if (*count > side_by_side) return "";
  return fmt::format("all {:.0f} configurations begin at once, so there is nothing to learn from", *count);
}

std::string too_many_for_gp(const StudyOutline& study) {
  const std::optional<double> count = expected(study);
  if (!count || *count <= kMostForGp) return "";
  return fmt::format("some {:.0f} configurations are expected, too many for gp", *count);
}

std::string curves_tell(const StudyOutline& study) {
  const bool plain = study.repetitions == 1 && study.constraints.empty() && !trials::is_conditional(study.space);
  if (!is_stopped(study) || study.epochs < kCurve || !plain || study.space.empty()) return "";
  return "forecasts of learning curves tell after every epoch which trials are worth the next one";
}

std::string gp_learns_soonest(const StudyOutline&) { return "gp needs the fewest trials to find good ones"; }

std::string several_objectives(const StudyOutline& study) {
  return study.objectives > 1 ? fmt::format("it learns for {} objectives", study.objectives) : "";
}

constexpr std::array<Rule, 6> kRules = {{
    {"grid", all_fit},
    {"sobol", nothing_to_learn},
    {"nsga2", several_objectives},
    {"tpe", too_many_for_gp},
    {"freeze_thaw", curves_tell, true},
    {"gp", gp_learns_soonest},
}};

}  // namespace

MethodChoice choose_method(const StudyOutline& study) {
  MethodChoice choice;
  for (const Rule& rule : kRules) {
    choice.reason = rule.reason(study);
    if (choice.reason.empty()) continue;
    choice.method = rule.method;
    if (is_stopped(study) && !rule.paces) {
      choice.stopping = Stopping{"asha", {}};
      choice.reason += ", and what asha saves pays for more trials";
    }
    break;
  }
  return choice;
}

}  // namespace hfta::search
