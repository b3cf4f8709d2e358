#pragma once
/// Decides whether a study ends before all of its trials are done: at its budget, or at its target.

#include <cstdint>
#include <optional>
#include <string>

#include "engine/config.hpp"

namespace hfta::engine {

/// The time and epochs that a study has used and its best value, over all of its runs.
struct Used {
  double seconds = 0;
  std::int64_t epochs = 0;     ///< Trial-epochs.
  std::optional<double> best;  ///< See Standings::best_value().
};

/// Whether the study has a budget or a target that may end it.
[[nodiscard]] bool ends_early(const StudyConfig& config);

[[nodiscard]] bool is_out_of_time(const StudyConfig& config, double seconds);

/// Why it ends now, in words that follow "ended by"; "" while it goes on.
[[nodiscard]] std::string end_of(const StudyConfig& config, const Used& used);

}  // namespace hfta::engine
