#pragma once
/// Small products in float64, for adapters that are merged. Internal to engine/export.

#include <cstdint>
#include <vector>

#include "fusion/data/safetensors.hpp"

namespace hfta::engine {

/// A row-major matrix.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  [[nodiscard]] double& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  [[nodiscard]] double at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
};

/// A tensor of floats as a matrix [size 0, the rest]. Throws Error{kStorage} for one of another type.
[[nodiscard]] Matrix matrix_of(const fusion::TensorView& tensor);
/// The first rows and columns of a matrix. Throws Error{kStorage} where it has fewer.
[[nodiscard]] Matrix corner(const Matrix& matrix, std::int64_t rows, std::int64_t columns);
/// Throws Error{kStorage} for matrices that are no factors.
[[nodiscard]] Matrix product(const Matrix& a, const Matrix& b);
[[nodiscard]] Matrix transposed(const Matrix& matrix);
/// The matrix as a tensor of `shape`, F32 or F64.
[[nodiscard]] fusion::StoredTensor tensor_of(const Matrix& matrix, const fusion::Shape& shape, fusion::DType dtype);

}  // namespace hfta::engine
