#pragma once
/// A study of several objectives: which of its trials are on the Pareto front, and how good that is.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/report/report.hpp"

namespace hfta::engine {

/// The rank of a COMPLETE trial among all of them; see fronts_of() and crowding_distances() in trials/pareto.hpp.
struct FrontPlace {
  int front = 0;  ///< Index of its front, from 0: no trial is better than those of front 0.
  double crowding = 0;
};

/// The place of each trial, in the order of `trials`; nullopt for those without a point (trials/pareto.hpp).
[[nodiscard]] std::vector<std::optional<FrontPlace>> front_places(const std::vector<trials::Trial>& trials,
                                                                  const trials::Objectives& objectives);

/// The front of each trial that has one, by the trial's number. Empty for a study of one objective.
[[nodiscard]] std::map<int, int> fronts_by_number(const ReportInput& input);

struct FrontSummary {
  std::vector<const trials::Trial*> trials;  ///< Trials on the front, by number.
  std::vector<double> reference;             ///< Point that the hypervolume is measured from, as values of the metrics.
  double hypervolume = 0;
};

/// The summary; nullopt for a study of one objective, or while no trial is COMPLETE. The reference is the input's or,
/// if it has none, the worst value that any COMPLETE trial has in each objective. Refers to `input`.
[[nodiscard]] std::optional<FrontSummary> front_of(const ReportInput& input);

/// A line for people; "" for a study of one objective.
[[nodiscard]] std::string front_text(const ReportInput& input);

/// A list of numbers, one per objective, as --reference has it: "0.5,20000". Throws Error{kConfig} for any other.
[[nodiscard]] std::vector<double> reference_from(const std::string& text, const trials::Objectives& objectives);

}  // namespace hfta::engine
