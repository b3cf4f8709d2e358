#include "engine/export/matrix.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/pt2/values.hpp"

namespace hfta::engine {
namespace {

using fusion::DType;

DType float_type(const fusion::TensorView& tensor) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    if (tensor.dtype == fusion::safetensors_name(dtype)) return dtype;
  }
  throw Error(ErrorKind::kStorage,
              fmt::format("{}: found {}, wanted floating-point numbers", printable(tensor.name), tensor.dtype));
}

template <typename T>
void store(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

Matrix matrix_of(const fusion::TensorView& tensor) {
  const fusion::StoredTensor stored{tensor.shape, float_type(tensor), {tensor.bytes.begin(), tensor.bytes.end()}};
  const fusion::pt2::Values values(stored);
  Matrix matrix;
  matrix.rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  matrix.columns = matrix.rows == 0 ? 0 : values.size() / matrix.rows;
  matrix.values.reserve(static_cast<std::size_t>(values.size()));
  for (std::int64_t i = 0; i < values.size(); ++i) matrix.values.push_back(values[i]);
  return matrix;
}

Matrix corner(const Matrix& matrix, std::int64_t rows, std::int64_t columns) {
  if (rows > matrix.rows || columns > matrix.columns) {
    throw Error(ErrorKind::kStorage, fmt::format("found a matrix of [{}, {}], wanted at least [{}, {}]", matrix.rows,
                                                 matrix.columns, rows, columns));
  }
  Matrix out{rows, columns, {}};
  out.values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out.values.push_back(matrix.at(r, c));
  }
  return out;
}

Matrix product(const Matrix& a, const Matrix& b) {
  if (a.columns != b.rows) {
    throw Error(ErrorKind::kStorage, fmt::format("found matrices of [{}, {}] and [{}, {}], wanted factors of a product",
                                                 a.rows, a.columns, b.rows, b.columns));
  }
  Matrix out{a.rows, b.columns, std::vector<double>(static_cast<std::size_t>(a.rows * b.columns))};
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t c = 0; c < b.columns; ++c) out.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return out;
}

Matrix transposed(const Matrix& matrix) {
  Matrix out{matrix.columns, matrix.rows, std::vector<double>(matrix.values.size())};
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    for (std::int64_t c = 0; c < matrix.columns; ++c) out.at(c, r) = matrix.at(r, c);
  }
  return out;
}

fusion::StoredTensor tensor_of(const Matrix& matrix, const fusion::Shape& shape, fusion::DType dtype) {
  fusion::StoredTensor tensor{shape, dtype, {}};
  if (dtype == DType::kFloat64) {
    store<double>(matrix.values, tensor.bytes);
  } else {
    store<float>(matrix.values, tensor.bytes);
  }
  return tensor;
}

}  // namespace hfta::engine
