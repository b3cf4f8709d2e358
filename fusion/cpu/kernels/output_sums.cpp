#include "fusion/cpu/kernels/output_sums.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

// [first, last) of the output along one dimension, at which a tap lies inside of the input.
struct Inside {
  std::int64_t first = 0, last = 0;
};

Inside inside(const ConvShape& s, std::size_t d, std::int64_t tap) {
  const std::int64_t from = s.padding[d] - tap * s.dilation[d];  // the input begins where out * stride >= from
  const std::int64_t first = from <= 0 ? 0 : (from + s.stride[d] - 1) / s.stride[d];
  const std::int64_t room = s.in[d] - 1 + from;
  const std::int64_t last = room < 0 ? 0 : std::min(s.out[d], room / s.stride[d] + 1);
  return {std::min(first, last), last};
}

inline __attribute__((always_inline)) void add_rows(const float* dy, std::int64_t rows, std::int64_t channels,
                                                    double* sums, double* squares) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto l = static_cast<double>(dy[r * channels + c]);
      sums[c] += l;
      squares[c] += l * l;
    }
  }
}

inline __attribute__((always_inline)) double sum_of_squares(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;  // sums side by side, in the same order with any width of registers
  double sums[kLanes] = {};
  for (std::int64_t i = 0; i + kLanes <= n; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
    }
  }
  double sum = 0;
  for (std::int64_t i = n / kLanes * kLanes; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (const double one : sums) sum += one;
  return sum;
}

}  // namespace

double mean_square(const float* x, std::int64_t n) {
  return simd::multiversion([&] { return sum_of_squares(x, n); }) / static_cast<double>(n);
}

void sum_output(const ConvShape& s, const float* dy, double* scratch, const SlotBounds::Sums& out) {
  std::fill(out.squares.begin(), out.squares.end(), 0.0);
  std::fill(out.square_of_sums.begin(), out.square_of_sums.end(), 0.0);
  double positions = 0;
  double* const sums = scratch;
  double* const squares = scratch + s.o;
  const double share = 1 / static_cast<double>(s.taps());
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    const Inside rows = inside(s, 0, tap / s.kernel[1]), columns = inside(s, 1, tap % s.kernel[1]);
    std::fill_n(scratch, 2 * s.o, 0.0);
    const std::int64_t width = columns.last - columns.first;
    for (std::int64_t i = 0; i < s.n; ++i) {
      for (std::int64_t h = rows.first; h < rows.last; ++h) {
        const float* const row = dy + ((i * s.out[0] + h) * s.out[1] + columns.first) * s.o;
        simd::multiversion([&] { add_rows(row, width, s.o, sums, squares); });
      }
    }
    positions += share * static_cast<double>(s.n * (rows.last - rows.first) * width);
    for (std::size_t c = 0; c < out.squares.size(); ++c) {
      out.squares[c] += share * squares[c];
      out.square_of_sums[c] += share * sums[c] * sums[c];
    }
  }
  *out.positions = positions;
}

void sum_output(const float* dy, std::int64_t rows, const SlotBounds::Sums& out) {
  std::fill(out.squares.begin(), out.squares.end(), 0.0);
  std::fill(out.square_of_sums.begin(), out.square_of_sums.end(), 0.0);
  const auto channels = static_cast<std::int64_t>(out.squares.size());
  simd::multiversion([&] { add_rows(dy, rows, channels, out.square_of_sums.data(), out.squares.data()); });
  for (double& sum : out.square_of_sums) sum *= sum;
  *out.positions = static_cast<double>(rows);
}

}  // namespace hfta::fusion::cpu
