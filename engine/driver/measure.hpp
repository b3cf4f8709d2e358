#pragma once
/// The value of the study's metric, taken from an epoch's metrics.

#include <map>
#include <string>

namespace hfta::engine {

struct Measurement {
  double value = 0;     ///< The study's metric; may be NaN or infinite.
  std::string failure;  ///< "train_loss is nan at epoch 3; finite until epoch 2" if it has diverged; else empty.
};

/// A trial has diverged when its training loss or the study's metric is not finite. Throws Error{kConfig}, naming
/// the available metrics, if `metric` is not one of them.
[[nodiscard]] Measurement measure(const std::map<std::string, double>& metrics, const std::string& metric, int epoch);

}  // namespace hfta::engine
