#include "fusion/codec/bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "fusion/codec/format.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

bool usable(double x) { return std::isfinite(x) && x > 0; }

std::size_t rows_of(const SavedInput& input) { return input.channels == 0 ? 0 : input.values.size() / input.channels; }

// Shares of values that are not 0, by channel.
std::vector<double> nonzero_shares(const SavedInput& input) {
  std::vector<double> shares(input.channels, 0);
  const std::size_t rows = rows_of(input);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const row = input.values.data() + r * input.channels;
    for (std::size_t c = 0; c < input.channels; ++c) shares[c] += row[c] != 0 ? 1 : 0;
  }
  for (double& share : shares) share /= static_cast<double>(std::max<std::size_t>(rows, 1));
  return shares;
}

// Root mean square of what is not 0; NaN where all is.
double size_of_nonzero(std::span<const float> x) {
  double squares = 0, nonzero = 0;
  for (const float v : x) {
    squares += static_cast<double>(v) * static_cast<double>(v);
    nonzero += v != 0 ? 1 : 0;
  }
  return std::sqrt(squares / nonzero);
}

// The root of the mean over channels of term(channel, its outputs).
template <typename Term>
double root_of_mean(std::size_t channels, std::span<const OutputSums> outputs, Term term) {
  if (channels == 0 || outputs.empty()) return 0;
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += term(c, outputs[c * outputs.size() / channels]);
  return std::sqrt(sum / static_cast<double>(channels));
}

constexpr std::size_t kRows = 64, kColumns = 64;  // size of a block, whose sums are floats

// Adds the errors of [rows, columns] values, and their squares. A value has none if its q is 2^22 or more (format.hpp).
inline __attribute__((always_inline)) void add_errors(const float* x, std::size_t ld, std::size_t rows,
                                                      std::size_t columns, float step, CodingError* errors) {
  constexpr float kMost = 0x1p22F;
  const float inverse = 1 / step;
  std::array<float, kColumns> sums = {}, squares = {};
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const row = x + r * ld;
    for (std::size_t c = 0; c < columns; ++c) {
      const float q = row[c] * inverse, whole = (q + codec::kMagic) - codec::kMagic;
      const float off = std::abs(q) < kMost ? step * whole - row[c] : 0.0F;
      sums[c] += off;
      squares[c] += off * off;
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    errors[c].mean += static_cast<double>(sums[c]);
    errors[c].square += static_cast<double>(squares[c]);
  }
}

}  // namespace

std::vector<CodingError> coding_errors(const SavedInput& input, float bound) {
  std::vector<CodingError> errors(input.channels);
  const std::size_t rows = rows_of(input);
  const float step = 2 * bound;
  if (rows == 0 || !usable(static_cast<double>(step)) || !std::isfinite(1 / step)) return errors;
  for (std::size_t r = 0; r < rows; r += kRows) {
    for (std::size_t c = 0; c < input.channels; c += kColumns) {
      const float* const x = input.values.data() + r * input.channels + c;
      simd::multiversion([&] {
        add_errors(x, input.channels, std::min(kRows, rows - r), std::min(kColumns, input.channels - c), step,
                   errors.data() + c);
      });
    }
  }
  for (CodingError& error : errors) {
    error.mean /= static_cast<double>(rows);
    error.square /= static_cast<double>(rows);
  }
  return errors;
}

double uniform_error(const SavedInput& input, std::span<const OutputSums> outputs, float bound) {
  const std::vector<double> shares = nonzero_shares(input);
  return static_cast<double>(bound) * root_of_mean(input.channels, outputs, [&](std::size_t c, const OutputSums& sums) {
           return shares[c] / 3 * sums.squares;
         });
}

double gradient_error(const SavedInput& input, std::span<const OutputSums> outputs, float bound) {
  const std::vector<CodingError> errors = coding_errors(input, bound);
  return root_of_mean(input.channels, outputs, [&](std::size_t c, const OutputSums& sums) {
    const double mean = errors[c].mean * errors[c].mean;
    const double beside = sums.squares - sums.square_of_sum / sums.positions;
    return mean * sums.square_of_sum + (errors[c].square - mean) * std::max(beside, 0.0);
  });
}

float bound_for(const SavedInput& input, std::span<const OutputSums> outputs, double sigma) {
  constexpr int kSteps = 40;
  constexpr auto kMost = static_cast<double>(std::numeric_limits<float>::max());
  const double uniform = sigma / uniform_error(input, outputs, 1);
  if (!usable(sigma) || !usable(uniform) || uniform >= kMost) return 0;
  const double first = std::min(uniform, size_of_nonzero(input.values));
  float bound = std::nextafter(static_cast<float>(first), 0.0F);
  for (int s = 0; s < kSteps; ++s) {
    const double found = gradient_error(input, outputs, bound);
    if (found <= sigma) return bound;
    if (!usable(found)) return 0;
    bound *= static_cast<float>(std::clamp(sigma / found, 0.5, 0.95));
  }
  return 0;
}

float first_bound(const SavedInput& input, double share) {
  const double bound = std::min(share * std::sqrt(6 / std::numbers::pi), 1.0) * size_of_nonzero(input.values);
  return usable(bound) && bound < static_cast<double>(std::numeric_limits<float>::max()) ? static_cast<float>(bound)
                                                                                         : 0;
}

double coherence_of(const SavedInput& rows) {
  const std::size_t count = rows_of(rows), channels = rows.channels;
  if (channels < 2 || count == 0) return 1;
  double sum = 0;
  std::vector<double> products(channels);
  for (std::size_t a = 1; a < channels; ++a) {
    std::fill_n(products.begin(), a, 0.0);
    for (std::size_t r = 0; r < count; ++r) {
      const float* const row = rows.values.data() + r * channels;
      for (std::size_t b = 0; b < a; ++b) products[b] += static_cast<double>(row[a]) * static_cast<double>(row[b]);
    }
    for (std::size_t b = 0; b < a; ++b) sum += products[b] * products[b];
  }
  const auto n = static_cast<double>(count), all = static_cast<double>(channels), pairs = all * (all - 1) / 2;
  const double found = sum / pairs / (n * n) - 1 / n;        // without correlation it would be 1 / n
  return found <= 1 ? std::max(found, kLeastCoherence) : 1;  // 1 if it is NaN
}

double noise_gain(std::span<const NormChannel> channels, double coherence) {
  double noise = 0, passed = 0;
  for (const NormChannel& one : channels) {
    const double factor = one.scale * one.scale, product = one.product * one.product;
    noise += factor * (product + coherence * one.square);
    passed += factor * (one.square - one.mean * one.mean - product);
  }
  if (noise == 0) return 0;
  return passed > 0 ? std::sqrt(noise / passed) : std::numeric_limits<double>::infinity();
}

double bearable_noise(double sigma, double mean_square_of_x, double squares, std::int64_t norms_above) {
  if (squares == 0) return std::numeric_limits<double>::infinity();
  return kPassedOn / std::sqrt(static_cast<double>(std::max<std::int64_t>(norms_above, 1))) * sigma /
         std::sqrt(mean_square_of_x * squares);
}

void GradientScale::add(std::span<const float> state) {
  for (const float v : state) sum_ += std::abs(static_cast<double>(v));
  count_ += state.size();
}

double GradientScale::value(double state_per_gradient) const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_) / state_per_gradient;
}

bool BoundCadence::due() {
  if (left > 0) {
    --left;
    return false;
  }
  left = std::max<std::int64_t>(current, 1) - 1;
  return true;
}

void BoundCadence::moved(double most) {
  constexpr double kMuch = 2;
  const std::int64_t longest = std::max<std::int64_t>(interval, 1);
  const bool settled = most <= kMuch;  // false if `most` is NaN
  current = settled ? (current > longest / 2 ? longest : 2 * std::max<std::int64_t>(current, 1))
                    : std::max<std::int64_t>(std::min(current, longest) / 2, 1);
  left = current - 1;
}

double movement(float before, float now) {
  if (before == now) return 1;
  const double ratio = static_cast<double>(now) / static_cast<double>(before);
  return ratio < 1 ? 1 / ratio : ratio;
}

}  // namespace hfta::fusion
