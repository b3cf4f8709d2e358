#pragma once
// The metrics that go with a kind of outputs, with every average and some k.

#include <vector>

#include "fusion/metric.hpp"

namespace hfta::fusion::testing {

inline std::vector<MetricSpec> every_spec(OutputKind kind) {
  std::vector<MetricSpec> specs;
  for (const MetricInfo& info : metrics()) {
    if (!info.takes_kind(kind)) continue;
    MetricSpec spec;
    spec.name = info.name;
    if (info.options.empty()) specs.push_back(spec);
    for (const MetricOption& option : info.options) {
      for (const Average average : option.averages) {
        spec.average = average;
        specs.push_back(spec);
      }
      if (!option.averages.empty()) continue;
      for (spec.k = option.least; spec.k <= 3; ++spec.k) specs.push_back(spec);
    }
  }
  return specs;
}

}  // namespace hfta::fusion::testing
