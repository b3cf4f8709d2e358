#include "search/sampler/gp/normal.hpp"

#include <cmath>
#include <numbers>

namespace hfta::search::gp {
namespace {

const double kLogRoot2Pi = std::log(2 * std::numbers::pi) / 2;
constexpr double kFar = -25;  // below, Mills' ratio is summed as a series

double probability(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

}  // namespace

double log_density(double z) { return -z * z / 2 - kLogRoot2Pi; }

double log_improvement(double z) {
  if (z > -1) return std::log(std::exp(log_density(z)) + z * probability(z));
  const double inverse = 1 / (z * z);
  // 1 - |z| M(|z|), M(t) = Phi(-t) / phi(t): for large |z| as its asymptotic series.
  if (z < kFar) return log_density(z) + std::log(inverse * (1 - inverse * (3 - inverse * (15 - inverse * 105))));
  return log_density(z) + std::log1p(z * std::exp(std::log(probability(z)) - log_density(z)));
}

double log_probability(double z) {
  if (z > kFar) return std::log(probability(z));
  const double inverse = 1 / (z * z);
  return log_density(z) - std::log(-z) + std::log1p(-inverse * (1 - inverse * (3 - inverse * 15)));
}

}  // namespace hfta::search::gp
