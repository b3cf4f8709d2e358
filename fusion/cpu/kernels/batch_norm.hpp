#pragma once
/// Normalisation of the columns of a matrix [rows, channels], row-major, or of some columns of a larger one: rows lie
/// `ld` elements apart.

#include <cstdint>

namespace hfta::fusion::cpu {

/// Mean of each column, and the sum of squares of what its elements are away from it. Sums are of blocks of rows,
/// around the mean of what is known before them: a large mean does not cancel the squares.
void column_statistics(const float* x, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* mean,
                       double* squares);
void column_statistics(const double* x, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* mean,
                       double* squares);

/// Statistics of n and of m rows become those of both (Chan, Golub, LeVeque 1979, equation 2.1); n may be 0.
inline void join_statistics(double n, double& mean, double& squares, double m, double other_mean,
                            double other_squares) {
  const double off = other_mean - mean;
  squares += other_squares + off * off * (n * m / (n + m));
  mean += off * (m / (n + m));
}

/// y = (x - mean) * scale + shift, + residual (null: none); what is negative becomes 0 if `relu`. NaN stays. y may be x
/// or the residual.
template <typename T>
struct Normalisation {
  const T* mean = nullptr;
  const T* scale = nullptr;
  const T* shift = nullptr;
  bool relu = false;
};
void normalise(const Normalisation<float>& by, const float* x, const float* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, float* y);
void normalise(const Normalisation<double>& by, const double* x, const double* residual, std::int64_t ld,
               std::int64_t rows, std::int64_t channels, double* y);

/// Sums over each column of dy and of dy (x - mean). dy counts as 0 where a relu gave 0: if `y` is given, that is where
/// y is 0, and dy is set to 0 in memory; otherwise the relu's result is computed from x as normalise() does.
void column_gradients(const Normalisation<float>& by, const float* x, const float* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, float* dy, double* sums, double* products);
void column_gradients(const Normalisation<double>& by, const double* x, const double* y, std::int64_t ld,
                      std::int64_t rows, std::int64_t channels, double* dy, double* sums, double* products);

/// dx = or += (dy - less - (x - mean) slope) scale, with dy 0 where `by` says that a relu gave 0. dx may be dy.
void normalise_backward(const Normalisation<float>& by, const float* less, const float* slope, const float* x,
                        const float* dy, std::int64_t ld, std::int64_t rows, std::int64_t channels, float* dx,
                        bool add);
void normalise_backward(const Normalisation<double>& by, const double* less, const double* slope, const double* x,
                        const double* dy, std::int64_t ld, std::int64_t rows, std::int64_t channels, double* dx,
                        bool add);

}  // namespace hfta::fusion::cpu
