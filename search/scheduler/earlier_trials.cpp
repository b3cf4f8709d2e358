// The rules that judge a trial by the trials drawn before it: median, percentile, asha by stopping, W&B's bands.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/percentile.hpp"
#include "search/scheduler/in_order.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

std::vector<int> every_epoch(const StoppingOptions& options) {
  std::vector<int> epochs(static_cast<std::size_t>(std::max(0, options.max_epochs - options.min_epochs)));
  std::iota(epochs.begin(), epochs.end(), options.min_epochs);
  return epochs;
}

// Number of values in `ascending` that are strictly better than `value`.
std::size_t better_ones(double value, const std::vector<double>& ascending, trials::Goal goal) {
  if (goal == trials::Goal::kMinimize) {
    return static_cast<std::size_t>(std::lower_bound(ascending.begin(), ascending.end(), value) - ascending.begin());
  }
  return static_cast<std::size_t>(ascending.end() - std::upper_bound(ascending.begin(), ascending.end(), value));
}

}  // namespace

std::unique_ptr<Scheduler> make_median(const StoppingOptions& options, trials::Goal goal, const std::vector<int>&) {
  const auto stops = [options, goal](double own, const std::vector<double>& others) {
    if (others.empty() || others.size() < static_cast<std::size_t>(options.min_trials)) return false;
    const std::size_t half = others.size() / 2;
    const double median = others.size() % 2 == 1 ? others[half] : std::midpoint(others[half - 1], others[half]);
    return trials::better(median, own, goal);
  };
  return make_in_order({options.max_epochs, every_epoch(options), Number::kBest, Number::kMean, stops}, goal);
}

std::unique_ptr<Scheduler> make_percentile(const StoppingOptions& options, trials::Goal goal, const std::vector<int>&) {
  if (!(options.percentile >= 0 && options.percentile <= 100)) {
    throw Error(ErrorKind::kConfig, fmt::format("percentile: found {}, wanted 0 to 100", options.percentile));
  }
  const double percent = goal == trials::Goal::kMinimize ? options.percentile : 100 - options.percentile;
  const auto stops = [options, goal, percent](double own, const std::vector<double>& others) {
    if (others.empty() || others.size() < static_cast<std::size_t>(options.min_trials)) return false;
    return trials::better(percentile_of(others, percent), own, goal);
  };
  return make_in_order({options.max_epochs, every_epoch(options), Number::kBest, Number::kLast, stops}, goal);
}

std::unique_ptr<Scheduler> make_asha_stopping(const StoppingOptions& options, trials::Goal goal) {
  std::vector<int> rungs = asha_rungs(options);
  rungs.pop_back();
  const auto stops = [eta = static_cast<std::size_t>(options.eta), goal](double own,
                                                                         const std::vector<double>& others) {
    return better_ones(own, others, goal) >= std::max<std::size_t>(1, (others.size() + 1) / eta);
  };
  return make_in_order({options.max_epochs, std::move(rungs), Number::kLast, Number::kLast, stops}, goal);
}

std::vector<int> bands_of(const StoppingOptions& options) {
  if (options.eta < 2 || options.min_epochs < 1) {
    throw Error(ErrorKind::kConfig, fmt::format("bands: found eta {} and min_epochs {}, wanted at least 2 and 1",
                                                options.eta, options.min_epochs));
  }
  std::vector<int> bands;
  if (options.max_iter) {
    for (int band = *options.max_iter / options.eta, i = 0; i < options.s && band > 0; band /= options.eta, ++i) {
      if (band < options.max_epochs) bands.insert(bands.begin(), band);
    }
    return bands;
  }
  for (std::int64_t band = options.min_epochs; band < options.max_epochs; band *= options.eta) {
    bands.push_back(static_cast<int>(band));
  }
  return bands;
}

std::unique_ptr<Scheduler> make_bands(const StoppingOptions& options, trials::Goal goal, const std::vector<int>&) {
  const auto stops = [eta = static_cast<std::size_t>(options.eta), goal](double own,
                                                                         const std::vector<double>& others) {
    return better_ones(own, others, goal) > (others.size() + 1) / eta;
  };
  return make_in_order({options.max_epochs, bands_of(options), Number::kBest, Number::kBest, stops}, goal);
}

}  // namespace hfta::search
