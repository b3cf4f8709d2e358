#pragma once
/// Loops over rows of a matrix: epilogues of products, and sums over rows. Leading dimensions in elements.

#include <cstdint>

namespace hfta::fusion::cpu {

/// y [rows, columns] += bias [columns] (null: none), then what is negative becomes 0 if `relu`. NaN stays.
void add_bias(float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const float* bias, bool relu);
void add_bias(double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const double* bias, bool relu);

/// dy becomes 0 where y, the output of a relu, is 0 (`y` null: nowhere); then sums [columns] = or += the sums of dy
/// over its rows (`sums` null: not wanted). dy and y have one leading dimension.
void mask_and_sum(float* dy, const float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* sums,
                  bool add);
void mask_and_sum(double* dy, const double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, double* sums,
                  bool add);

/// Of `rows` rows of logits [classes], mean cross entropy as PyTorch has it with label smoothing. `gradient` (null: not
/// wanted), of the mean, has logits' layout. Rows of class -100 do not count; another that is none makes the loss NaN.
/// `scratch` has room for `classes`.
[[nodiscard]] double cross_entropy(const float* logits, const std::int64_t* classes_of, std::int64_t rows,
                                   std::int64_t classes, double smoothing, float* scratch, float* gradient);
[[nodiscard]] double cross_entropy(const double* logits, const std::int64_t* classes_of, std::int64_t rows,
                                   std::int64_t classes, double smoothing, double* scratch, double* gradient);

}  // namespace hfta::fusion::cpu
