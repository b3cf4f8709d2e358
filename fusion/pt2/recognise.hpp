#pragma once
/// Recognises the distribution that a tensor's values were drawn from.

#include <optional>
#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

inline constexpr std::size_t kFewest = 16;  ///< Fewer values fit almost anything.

/// Values of a tensor, some of them where it is large, and what is known of all.
struct Sample {
  Shape shape;
  std::vector<double> values;  ///< Sorted; at most kMost.
  double largest = 0;          ///< Largest absolute value of all.
  bool constant = false;       ///< Every one is 0 or one other number: zeros, ones, an identity.
  double rounding = 1e-5;      ///< Relative rounding error of the tensor's type.
  bool complex = false;        ///< `values` are real and imaginary parts.
  static constexpr std::size_t kMost = 1 << 16;
};

/// `zero_row`: a row that is left out, as Init::zero_row; -1: none. Of floats alone.
[[nodiscard]] Sample sample_of(const StoredTensor& tensor, int zero_row);

/// Whether the values may be draws of `init` (uniform, normal or truncated normal). True draws are refused about
/// once in a million times: by a Kolmogorov-Smirnov test of their distribution, and tests of their spread, tails and
/// largest value, each with three chances in ten million. Of few values only what is all but impossible is refused.
[[nodiscard]] bool fits(const Sample& sample, const Init& init);

/// How each part of a complex number is drawn, where the number is drawn by `init`: normal parts have half of its
/// variance, uniform ones the same bounds (torch.Tensor.normal_, uniform_).
[[nodiscard]] Init of_parts(Init init);

/// The known scheme that the values were drawn by: those of torch.nn.init by the shape's fans (kaiming, xavier, lecun,
/// uniform, normal and truncated normal), an embedding's N(0, 1), the 0.02 and 0.02 / sqrt(2 layers) of GPT-2,
/// orthogonal matrices, else a spread of two digits. Of several that fit the likeliest, named schemes first. Nothing of
/// fewer than kFewest values, or where no scheme fits.
[[nodiscard]] std::optional<Init> recognise(const Sample& sample, const StoredTensor& tensor);

}  // namespace hfta::fusion::pt2
