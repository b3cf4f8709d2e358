#pragma once
/// Softmax of matrices without gaps, along their rows or their columns. `team`: who shares the work; null: the caller
/// alone.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// `blocks` matrices [n, columns], along whose columns softmax is taken: each column's n elements are one distribution.
/// Of one column, they are the rows of a matrix [blocks, n].
struct SoftmaxShape {
  std::int64_t blocks = 1, n = 1, columns = 1;
};

/// y = softmax(x), or its logarithm. y may be x. A NaN stays in its distribution.
void softmax(Team* team, const float* x, float* y, const SoftmaxShape& shape, bool log);
void softmax(Team* team, const double* x, double* y, const SoftmaxShape& shape, bool log);

/// dx = or += the gradient. dx may be dy unless `add`.
void softmax_backward(Team* team, const float* dy, const float* y, float* dx, const SoftmaxShape& shape, bool log,
                      bool add);
void softmax_backward(Team* team, const double* dy, const double* y, double* dx, const SoftmaxShape& shape, bool log,
                      bool add);

/// Scale and mask of the scores of one attention head, applied before their softmax.
template <typename T>
struct ScoreMask {
  T scale = 1;
  bool causal = false;                 ///< Row r sees elements 0 to r.
  const T* added = nullptr;            ///< Added to scores; or null. Element (r, c) is at r row_step + c step.
  const std::uint8_t* seen = nullptr;  ///< Laid out alike, or null: the weight is 0 where it is 0.
  std::int64_t row_step = 0, step = 0;
};

/// scores = softmax(scale scores + mask), in place.
void attention_weights(float* scores, std::int64_t rows, std::int64_t n, const ScoreMask<float>& mask);
void attention_weights(double* scores, std::int64_t rows, std::int64_t n, const ScoreMask<double>& mask);

/// d = scale times the gradient with respect to the scores, of weights w and their gradient d (times `kept`, the
/// dropout mask; null: none), in place.
void attention_weights_backward(float* d, const float* w, const float* kept, float scale, std::int64_t rows,
                                std::int64_t n);
void attention_weights_backward(double* d, const double* w, const double* kept, double scale, std::int64_t rows,
                                std::int64_t n);

}  // namespace hfta::fusion::cpu
