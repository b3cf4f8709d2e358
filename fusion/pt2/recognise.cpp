#include "fusion/pt2/recognise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>

#include "fusion/pt2/values.hpp"

namespace hfta::fusion::pt2 {
namespace {

using Kind = Init::Kind;

constexpr double kChance = 3e-7;     // chance of refusing true draws, per test
constexpr double kDeviations = 5.1;  // what a normal number exceeds with that chance

// A normal distribution cut off at two standard deviations: its second and fourth moments, and what is left of it.
constexpr double kCut = 2, kCutSecond = 0.7737413, kCutFourth = 1.4161935, kCutMass = 0.9544997;

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double below(const Init& init, double x) {
  const double at = x / init.scale;
  if (init.kind == Kind::kUniform) return std::clamp(0.5 * (at + 1), 0.0, 1.0);
  if (init.kind == Kind::kNormal) return normal_below(at);
  return std::clamp((normal_below(at) - (1 - kCutMass) / 2) / kCutMass, 0.0, 1.0);
}

// The chance that draws are farther from their distribution (Kolmogorov; Stephens' correction for few of them).
double chance_of_distance(double distance, double n) {
  const double at = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * distance;
  if (at < 0.3) return 1;
  double chance = 0;
  for (int k = 1; k <= 20; ++k) chance += (k % 2 == 1 ? 2 : -2) * std::exp(-2 * k * k * at * at);
  return chance;
}

bool distribution_fits(const Sample& sample, const Init& init) {
  const auto n = static_cast<double>(sample.values.size());
  double distance = 0;
  for (std::size_t i = 0; i < sample.values.size(); ++i) {
    const double expected = below(init, sample.values[i]), rank = static_cast<double>(i);
    distance = std::max({distance, expected - rank / n, (rank + 1) / n - expected});
  }
  return chance_of_distance(distance, n) > kChance;
}

double second_moment(const Sample& sample) {
  const double sum = std::accumulate(sample.values.begin(), sample.values.end(), 0.0,
                                     [](double all, double value) { return all + value * value; });
  return sum / static_cast<double>(sample.values.size());
}

// The mean square against its own distribution: chi squared for normal draws (Wilson and Hilferty), normal for others.
bool spread_fits(const Sample& sample, const Init& init) {
  const auto n = static_cast<double>(sample.values.size());
  const double square = second_moment(sample) / (init.scale * init.scale);
  if (init.kind == Kind::kNormal) {
    const double width = 2 / (9 * n);
    return std::abs(std::cbrt(square) - (1 - width)) <= kDeviations * std::sqrt(width);
  }
  const bool uniform = init.kind == Kind::kUniform;
  const double mean = uniform ? 1.0 / 3 : kCutSecond, fourth = uniform ? 1.0 / 5 : kCutFourth;
  // The mean of few bounded numbers is less normal, so that it is not tested.
  return n < 64 || std::abs(square - mean) <= kDeviations * std::sqrt((fourth - mean * mean) / n);
}

// Tails: the mean absolute value over the deviation that the values show (Geary), and the largest of all.
bool tails_fit(const Sample& sample, const Init& init) {
  if (init.kind != Kind::kNormal) return true;
  const auto n = static_cast<double>(sample.values.size());
  const double all = static_cast<double>(elements_of(sample.shape, 1));
  if (all * std::erfc(sample.largest / init.scale / std::numbers::sqrt2) < kChance) return false;
  double sum = 0;
  for (const double value : sample.values) sum += std::abs(value);
  const double ratio = sum / n / std::sqrt(second_moment(sample));
  const double expected = std::sqrt(2 / std::numbers::pi), width = std::sqrt((1 - 3 / std::numbers::pi) / n);
  return n < 64 || std::abs(ratio - expected) <= kDeviations * width;
}

bool bound_fits(const Sample& sample, const Init& init) {
  if (init.kind == Kind::kNormal) return true;
  const double bound = init.scale * (init.kind == Kind::kUniform ? 1 : kCut);
  if (sample.largest > bound * (1 + sample.rounding)) return false;
  const double chance = std::pow(below(init, sample.largest) - below(init, -sample.largest),
                                 static_cast<double>(elements_of(sample.shape, 1)));
  return sample.largest >= bound || chance > kChance;
}

double log_likelihood(const Sample& sample, const Init& init) {
  const auto n = static_cast<double>(sample.values.size());
  if (init.kind == Kind::kUniform) return -n * std::log(2 * init.scale);
  const double square = second_moment(sample) / (init.scale * init.scale);
  const double normal = -n * (0.5 * square + std::log(init.scale * std::sqrt(2 * std::numbers::pi)));
  return init.kind == Kind::kNormal ? normal : normal - n * std::log(kCutMass);
}

// ---- schemes ----

double size(const Shape& shape, std::size_t dim) { return dim < shape.size() ? static_cast<double>(shape[dim]) : 1; }

// Numbers that schemes divide by: fans, and sizes where a model's layout is another than PyTorch's.
std::vector<double> fans(const Shape& shape) {
  double field = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) field *= size(shape, i);
  std::vector<double> all = {size(shape, 1) * field,        size(shape, 0) * field, size(shape, 0),    size(shape, 1),
                             size(shape, shape.size() - 1), size(shape, 0) / 3,     size(shape, 0) / 4};
  std::erase_if(all, [](double fan) { return fan < 1; });
  return all;
}

/// Standard deviations of the schemes, before a cut.
std::vector<double> deviations(const Shape& shape) {
  constexpr std::array<double, 3> kGains = {1, 5.0 / 3, std::numbers::sqrt2};
  const std::vector<double> all = fans(shape);
  std::vector<double> out;
  for (const double fan : all) {
    for (const double factor : {1.0, 2.0, 1.0 / 3}) out.push_back(std::sqrt(factor / fan));
  }
  for (const double gain : kGains) {
    out.push_back(gain * std::sqrt(2 / (all[0] + all[1])));
    out.push_back(gain / std::sqrt(all[0]));  // three square matrices that were drawn apart and joined
  }
  return out;
}

std::vector<Init> named_schemes(const Shape& shape) {
  constexpr int kMostLayers = 200;
  std::vector<Init> out;
  for (const double deviation : deviations(shape)) {
    out.push_back({Kind::kUniform, deviation * std::numbers::sqrt3});
    out.push_back({Kind::kNormal, deviation});
    out.push_back({Kind::kTruncatedNormal, deviation});
    out.push_back({Kind::kTruncatedNormal, deviation / std::sqrt(kCutSecond)});
  }
  for (const double deviation : {1.0, 0.02, 0.01, 0.1, 0.05, 0.001}) {
    out.push_back({Kind::kNormal, deviation});
    out.push_back({Kind::kTruncatedNormal, deviation});
    out.push_back({Kind::kUniform, deviation});
  }
  for (int layers = 1; layers <= kMostLayers; ++layers) out.push_back({Kind::kNormal, 0.02 / std::sqrt(2.0 * layers)});
  return out;
}

// Numbers of two digits around what the values show.
std::vector<Init> round_schemes(const Sample& sample) {
  std::vector<Init> out;
  const auto add = [&](Kind kind, double about) {
    if (!(about > 0)) return;
    const double digit = std::pow(10, std::floor(std::log10(about)) - 1);
    const double nearest = std::round(about / digit);
    for (const double n : {nearest - 1, nearest, nearest + 1}) out.push_back({kind, n * digit});
  };
  const double deviation = std::sqrt(second_moment(sample));
  add(Kind::kUniform, sample.largest);
  add(Kind::kNormal, deviation);
  add(Kind::kTruncatedNormal, deviation / std::sqrt(kCutSecond));
  return out;
}

std::optional<Init> likeliest(const Sample& sample, const std::vector<Init>& schemes) {
  std::optional<Init> best;
  double most = -std::numeric_limits<double>::infinity();
  for (const Init& init : schemes) {
    if (!fits(sample, init)) continue;
    const double likelihood = log_likelihood(sample, init);
    if (best && likelihood <= most) continue;
    best = init;
    most = likelihood;
  }
  return best;
}

// Rows, or columns, at right angles and of one length, as torch.nn.init.orthogonal_ makes them; the gain. Matrices that
// are stacked of such ones are another scheme.
std::optional<double> orthogonal_gain(const Sample& sample, const StoredTensor& tensor) {
  constexpr std::int64_t kMostCompared = 48;
  const std::int64_t rows = sample.shape.empty() ? 0 : sample.shape[0];
  const std::int64_t columns = rows > 0 ? elements_of(sample.shape, 1) / rows : 0;
  const std::int64_t fewer = std::min(rows, columns), more = std::max(rows, columns);
  if (fewer < 2 || (fewer != more && more % fewer == 0 && rows > columns)) return std::nullopt;
  const Values values(tensor);
  const auto product = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t k = 0; k < more; ++k) {
      sum += rows <= columns ? values[a * columns + k] * values[b * columns + k]
                             : values[k * columns + a] * values[k * columns + b];
    }
    return sum;
  };
  const double square = product(0, 0);
  const std::int64_t compared = std::min(fewer, kMostCompared);
  for (std::int64_t a = 0; a < compared; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      if (!(std::abs(product(a, b) - (a == b ? square : 0)) <= 1e-4 * square)) return std::nullopt;
    }
  }
  return std::sqrt(square);
}

}  // namespace

Sample sample_of(const StoredTensor& tensor, int zero_row) {
  Sample sample;
  sample.shape = tensor.shape;
  const Values values(tensor);
  const std::int64_t n = values.size(), row = zero_row < 0 ? 0 : n / std::max<std::int64_t>(1, tensor.shape[0]);
  const auto left_out = [&](std::int64_t i) { return zero_row >= 0 && i / row == zero_row; };
  const std::int64_t stride = std::max<std::int64_t>(
      1, (n + static_cast<std::int64_t>(Sample::kMost) - 1) / static_cast<std::int64_t>(Sample::kMost));
  if (tensor.dtype == DType::kFloat16) sample.rounding = 1e-3;
  if (tensor.dtype == DType::kBFloat16) sample.rounding = 1e-2;
  sample.complex = is_complex(tensor.dtype);
  sample.constant = true;
  std::optional<double> set;
  for (std::int64_t i = 0; i < n; ++i) {
    if (left_out(i)) continue;
    const double value = values[i];
    if (std::isnan(value)) sample.largest = std::numeric_limits<double>::infinity();  // fits no scheme
    if (std::isnan(value)) continue;
    if (!set && value != 0) set = value;
    sample.constant = sample.constant && (value == 0 || value == *set);
    sample.largest = std::max(sample.largest, std::abs(value));
    if (i % stride == 0) sample.values.push_back(value);
  }
  std::sort(sample.values.begin(), sample.values.end());
  return sample;
}

bool fits(const Sample& sample, const Init& init) {
  const bool drawn = init.kind == Kind::kUniform || init.kind == Kind::kNormal || init.kind == Kind::kTruncatedNormal;
  if (!drawn || sample.values.empty() || !std::isfinite(sample.largest) || !(init.scale > 0)) return false;
  return bound_fits(sample, init) && spread_fits(sample, init) && tails_fit(sample, init) &&
         distribution_fits(sample, init);
}

Init of_parts(Init init) {
  if (init.kind == Kind::kNormal || init.kind == Kind::kTruncatedNormal) init.scale /= std::numbers::sqrt2;
  return init;
}

std::optional<Init> recognise(const Sample& sample, const StoredTensor& tensor) {
  if (sample.values.size() < kFewest || !std::isfinite(sample.largest)) return std::nullopt;
  const std::optional<double> gain = sample.complex ? std::nullopt : orthogonal_gain(sample, tensor);
  if (gain) return Init{Kind::kOrthogonal, *gain};
  std::vector<Init> schemes = named_schemes(sample.shape);
  if (sample.complex) std::transform(schemes.begin(), schemes.end(), schemes.begin(), of_parts);
  if (std::optional<Init> named = likeliest(sample, schemes)) return named;
  return likeliest(sample, round_schemes(sample));
}

}  // namespace hfta::fusion::pt2
