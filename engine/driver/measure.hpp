#pragma once
/// From an epoch's metrics to the one number that the study is about.

#include <map>
#include <string>

namespace hfta::engine {

struct Measurement {
  double value = 0;     ///< The study's metric; may be NaN or infinite.
  std::string failure;  ///< "train_loss is nan at epoch 3; finite until epoch 2" if it has diverged; else empty.
};

/// A trial has diverged when its training loss or the study's metric is not finite. Throws Error{kConfig} naming the
/// metrics there are if `metric` is none of them.
[[nodiscard]] Measurement measure(const std::map<std::string, double>& metrics, const std::string& metric, int epoch);

}  // namespace hfta::engine
