#pragma once
/// Convolutions whose input has few channels: a result pixel is a short sum, whose terms are a source element times a
/// row of outputs. Products of matrices would need the pixels' surroundings copied as rows.

#include <cstdint>
#include <vector>

namespace hfta::fusion::cpu {

/// Rows of outputs lie this many elements apart, or a multiple; those that are too many are 0.
constexpr std::int64_t kFewOutputs = 16;

/// A row of result pixels.
template <typename T>
struct FewPixels {
  std::int64_t pixels = 0, step = 0;  ///< `step`: elements from what one pixel reads to what the next one does.
  std::vector<std::int64_t> terms;    ///< Offsets in the source from a pixel's place, one for each row of weights.
  std::int64_t width = 0;             ///< Elements of a row of weights, a multiple of kFewOutputs.
  std::int64_t ld = 0;                ///< Elements from one result pixel to the next.
};

/// result [pixels, ld] = or, `add`, += the sum over terms of source[pixel * step + terms[t]] * weights[t], of [terms,
/// width], for `outputs` of them; with `bias` (null: without) and relu.
void few_forward(const FewPixels<float>& row, const float* source, const float* weights, const float* bias, bool relu,
                 bool add, std::int64_t outputs, float* result);
void few_forward(const FewPixels<double>& row, const double* source, const double* weights, const double* bias,
                 bool relu, bool add, std::int64_t outputs, double* result);

/// sums [terms, width] += the sum over pixels of source[pixel * step + terms[t]] * dy[pixel], of [pixels, ld].
void few_gradient(const FewPixels<float>& row, const float* source, const float* dy, std::int64_t outputs, float* sums);
void few_gradient(const FewPixels<double>& row, const double* source, const double* dy, std::int64_t outputs,
                  double* sums);

}  // namespace hfta::fusion::cpu
