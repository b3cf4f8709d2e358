#pragma once
/// Short ways to write distributions down in tests.

#include <string>
#include <utility>
#include <vector>

#include "trials/space.hpp"

namespace hfta::trials::testing {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

inline Distribution bounded(DistributionKind kind, double min, double max, double q = 1, bool integer = false) {
  Distribution d;
  d.kind = kind;
  d.min = min;
  d.max = max;
  d.q = q;
  d.integer = integer;
  return d;
}

inline Distribution normal(DistributionKind kind, double mu, double sigma, double q = 1, bool integer = false) {
  Distribution d;
  d.kind = kind;
  d.mu = mu;
  d.sigma = sigma;
  d.q = q;
  d.integer = integer;
  return d;
}

inline Distribution categorical(std::vector<ParamValue> values, std::vector<double> probabilities = {}) {
  Distribution d;
  d.kind = DistributionKind::kCategorical;
  d.values = std::move(values);
  d.probabilities = std::move(probabilities);
  return d;
}

inline Distribution constant(ParamValue value) {
  Distribution d;
  d.values = {std::move(value)};
  return d;
}

inline ParamValue word(const char* text) { return std::string(text); }
inline ParamValue integer(std::int64_t value) { return value; }

}  // namespace hfta::trials::testing
