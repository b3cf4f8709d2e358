#pragma once
/// Loops over rows of a matrix: epilogues of products, and sums over rows. Leading dimensions in elements. `team`: who
/// shares the work; null: the caller alone.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// y [rows, columns] += bias [columns] (null: none), then what is negative becomes 0 if `relu`. NaN stays.
void add_bias(float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const float* bias, bool relu);
void add_bias(double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const double* bias, bool relu);

/// dy becomes 0 where y, the output of a relu, is 0 (`y` null: nowhere); then sums [columns] = or += the sums of dy
/// over its rows (`sums` null: not wanted). dy and y have one leading dimension.
void mask_and_sum(Team* team, float* dy, const float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                  float* sums, bool add);
void mask_and_sum(Team* team, double* dy, const double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                  double* sums, bool add);

/// Cross entropy of rows of logits [classes] with classes, as torch.nn.functional.cross_entropy defines it.
template <typename T>
struct CrossEntropy {
  std::int64_t rows = 0, classes = 0;
  std::int64_t ignored = -100;  ///< Rows of this class do not count; one of another class that there is not is NaN.
  double smoothing = 0;         ///< Label smoothing.
  const T* weight = nullptr;    ///< By class; null: all 1.
  bool mean = true;             ///< The result, and gradients, are divided by the sum of the rows' weights.
};

/// Scratch memory of a call.
template <typename T>
struct CrossEntropyScratch {
  double* losses = nullptr;  ///< [rows]
  T* rows = nullptr;         ///< [threads of the team, ld]
  std::int64_t ld = 0;       ///< At least `classes`.
};

/// The sum or mean over the rows. `each` (null: not wanted): every row's loss, not divided. `gradient` (null: not
/// wanted): of the result, in logits' layout.
[[nodiscard]] double cross_entropy(Team* team, const CrossEntropy<float>& task, const float* logits,
                                   const std::int64_t* classes_of, float* each,
                                   const CrossEntropyScratch<float>& scratch, float* gradient);
[[nodiscard]] double cross_entropy(Team* team, const CrossEntropy<double>& task, const double* logits,
                                   const std::int64_t* classes_of, double* each,
                                   const CrossEntropyScratch<double>& scratch, double* gradient);

}  // namespace hfta::fusion::cpu
