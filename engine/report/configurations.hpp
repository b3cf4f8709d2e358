#pragma once
/// A study with repetitions, configuration by configuration.

#include <optional>
#include <string>
#include <vector>

#include "engine/report/report.hpp"
#include "trials/repetition.hpp"

namespace hfta::engine {

/// A configuration and what its trials have come to.
struct ConfigurationRow {
  trials::Configuration configuration;
  int complete = 0, running = 0, pruned = 0, failed = 0;  ///< Trials.
  std::optional<trials::Summary> summary;  ///< Summary of finite values of COMPLETE trials, if there are any.
};

/// Rows from the best to the worst: by value, then those without one in order of their draws. Empty in a study without
/// repetitions. Refers to `input`.
[[nodiscard]] std::vector<ConfigurationRow> configuration_rows(const ReportInput& input);

/// The best COMPLETE trial of a report: with repetitions, the best repetition of the best configuration. nullptr: there
/// is none, or several objectives.
[[nodiscard]] const trials::Trial* best_of(const ReportInput& input);

/// A text: how often configurations are repeated, and the `top` best in columns, with mean, standard deviation and
/// interval; "" in a study without repetitions.
[[nodiscard]] std::string configurations_text(const ReportInput& input, int top);

}  // namespace hfta::engine
