#pragma once
/// Rows that are brought to mean 0 and variance 1, or to a mean square of 1. `team`: who shares the work; null: the
/// caller alone.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// Rows of n elements without gaps. `weight` and `bias` (null: none) are tables of `groups` rows of n: row r has those
/// of row r % groups.
struct NormShape {
  std::int64_t rows = 0, n = 0, groups = 1;
  bool centered = true;  ///< False: the mean counts as 0, and so the variance is the mean square (RMS norm).

  /// Elements of NormGradients::scratch.
  [[nodiscard]] std::int64_t scratch() const;
};

/// y = (x - mean) inverse * weight + bias, where inverse = 1 / sqrt(variance + eps). Keeps mean and inverse of each
/// row.
void normalize_rows(Team* team, const NormShape& shape, const float* x, const float* weight, const float* bias,
                    double eps, float* y, float* mean, float* inverse);
void normalize_rows(Team* team, const NormShape& shape, const double* x, const double* weight, const double* bias,
                    double eps, double* y, double* mean, double* inverse);

/// Memory for normalize_rows' gradients; null where one is not wanted.
template <typename T>
struct NormGradients {
  T* x = nullptr;
  T* weight = nullptr;
  T* bias = nullptr;
  bool add_x = false, add_weight = false, add_bias = false;
  T* scratch = nullptr;  ///< NormShape::scratch() elements.
};
void normalize_rows_backward(Team* team, const NormShape& shape, const float* dy, const float* x, const float* weight,
                             const float* mean, const float* inverse, const NormGradients<float>& to);
void normalize_rows_backward(Team* team, const NormShape& shape, const double* dy, const double* x,
                             const double* weight, const double* mean, const double* inverse,
                             const NormGradients<double>& to);

}  // namespace hfta::fusion::cpu
