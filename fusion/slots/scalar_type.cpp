#include "fusion/slots/scalar_type.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace hfta::fusion {

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kInt64:
      return at::kLong;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt16:
      return at::kShort;
    case DType::kInt8:
      return at::kChar;
    case DType::kUInt8:
      return at::kByte;
    case DType::kBool:
      return at::kBool;
    case DType::kComplex64:
      return at::kComplexFloat;
    case DType::kComplex128:
      return at::kComplexDouble;
  }
  throw Error(ErrorKind::kInternal, "unknown dtype");
}

std::optional<DType> dtype_of(at::ScalarType type) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
        DType::kInt16, DType::kInt8, DType::kUInt8, DType::kBool, DType::kComplex64, DType::kComplex128}) {
    if (scalar_type(dtype) == type) return dtype;
  }
  return std::nullopt;
}

}  // namespace hfta::fusion
