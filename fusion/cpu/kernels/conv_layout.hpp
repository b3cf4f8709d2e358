#pragma once
/// Rearranging images and weights for convolutions.

#include "fusion/cpu/kernels/conv_geometry.hpp"

namespace hfta::fusion::cpu {

/// `to` [bordered, block] = channels [first, first + block) of an image `from` [g.source, channels], zeros around it.
template <typename T>
void copy_bordered(const TapGeometry& g, std::int64_t channels, std::int64_t first, std::int64_t block, const T* from,
                   T* to);

/// Rows that turn_weights() turns at a time: where it is called for some of them, for multiples of so many.
inline constexpr std::int64_t kTurnedAtOnce = 16;

/// `to` [taps, k, ld]: for tap t, row i, column j (of `columns` <= ld) the element taps[t].element of `from`'s
/// [columns, k, elements] (`outputs_first`) or [k, columns, elements], whose leading dimension is `stride`. `scratch`:
/// turning_scratch() elements.
struct Turning {
  std::int64_t k = 0, columns = 0, ld = 0;
  std::int64_t stride = 0;      ///< Stride of `from`'s leading dimension, in elements.
  std::int64_t elements = 0;    ///< Elements of a kernel: height * width.
  std::int64_t tap_stride = 0;  ///< Elements from one tap of `to` to the next.
};
void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const float* from, float* to, float* scratch);
void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const double* from, double* to, double* scratch);
[[nodiscard]] std::int64_t turning_scratch(std::int64_t elements, std::int64_t columns);

/// `to` [columns, ldt >= rows] += the transpose of `from` [rows, ld >= columns] (transpose() in pack.hpp puts it in
/// place of what is there). `scratch`: rows * columns elements.
template <typename T>
void add_transposed(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* to, std::int64_t ldt,
                    T* scratch);

}  // namespace hfta::fusion::cpu
