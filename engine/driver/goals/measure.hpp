#pragma once
/// The values of the study's objectives, taken from an epoch's metrics.

#include <map>
#include <string>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

struct Measurement {
  std::vector<double> values;  ///< One per objective, in order; may be NaN or infinite.
  std::string failure;         ///< "train_loss is nan at epoch 3; finite until epoch 2" if it has diverged; else empty.
};

/// A trial has diverged when its training loss or the value of an objective is not finite. Throws Error{kConfig},
/// naming the available metrics, if an objective's is not one of them.
[[nodiscard]] Measurement measure(const std::map<std::string, double>& metrics, const trials::Objectives& objectives,
                                  int epoch);

/// The metrics that are objectives. The others, thousands where there is a confusion matrix, are in the store.
[[nodiscard]] std::map<std::string, double> of_objectives(const std::map<std::string, double>& metrics,
                                                          const trials::Objectives& objectives);

/// The metric's values after epochs 1, 2, ... of an ended trial, also of one that another program made; NaN where it is
/// missing. Steps that are counted from 0 become epochs. Empty where steps were left out: after how many epochs of ours
/// a value came is not known then.
[[nodiscard]] std::vector<double> curve_of(const trials::Trial& trial, const std::string& metric);

}  // namespace hfta::engine
