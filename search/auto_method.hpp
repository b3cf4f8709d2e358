#pragma once
/// `method: auto`: which method, and which rule of early stopping, suit a study.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/constraints.hpp"
#include "search/stopping.hpp"
#include "trials/space.hpp"

namespace hfta::search {

/// The facts about a study that are known before it begins.
struct StudyOutline {
  const trials::Space& space;
  const std::vector<Constraint>& constraints;
  int epochs = 1;                                 ///< Epochs of a trial that is not stopped.
  std::optional<int> configurations = {};         ///< The most that are drawn: run_cap.
  std::optional<std::int64_t> trial_epochs = {};  ///< The most that are trained: budget.epochs.
  int repetitions = 1;                            ///< Trials of each configuration.
  std::optional<int> width = {};                  ///< Slots, where the config says how many.
  bool stops = false;                             ///< The config has rules of early stopping.
  std::size_t objectives = 1;
};

struct MethodChoice {
  std::string method = {};                ///< A name of methods().
  std::optional<Stopping> stopping = {};  ///< Set where trials shall be stopped, and the config has no rule for it.
  std::string reason = {};                ///< "the space has 12 configurations, and run_cap has room for all of them"
};

/// The first row that holds of a table of rules, which follow from the measurements in docs/search.md ("auto"). A
/// function of the outline alone. The space must be valid. Throws Error{kConfig} for constraints that no configuration
/// of a finite space meets.
[[nodiscard]] MethodChoice choose_method(const StudyOutline& study);

}  // namespace hfta::search
