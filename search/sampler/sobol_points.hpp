#pragma once
/// Scrambled Sobol points. Internal to samplers.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace hfta::search {

/// Points of the unit cube that fill it more evenly than random ones: of every aligned run of 2^m points, each of 2^m
/// equal slices of any axis has one. I. Sobol, 1967, with the direction numbers of S. Joe and F. Kuo, "Constructing
/// Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), as Boost.Random has them;
/// scrambled by a random lower triangular matrix of bits and a random shift for each axis (J. Matousek, "On the
/// L2-discrepancy for anchored boxes", J. Complexity 14, 1998), so that each point by itself is uniform.
class SobolPoints {
 public:
  /// The scrambling is a function of (seed, stream, item). Axes beyond the 3667 that have direction numbers get
  /// independent uniform numbers.
  SobolPoints(std::size_t dimensions, std::uint64_t seed, Stream stream, std::uint64_t item = 0);

  /// Points first .. first+count-1, each of `dimensions` numbers in [0, 1). A function of its arguments.
  [[nodiscard]] std::vector<std::vector<double>> points(std::uint64_t first, std::size_t count) const;

 private:
  struct Scrambling {
    std::vector<std::uint64_t> rows;  ///< Rows of the matrix, the most significant bit's first.
    std::uint64_t shift = 0;
    [[nodiscard]] std::uint64_t of(std::uint64_t bits) const;
  };

  std::size_t dimensions_;
  std::uint64_t seed_, item_;
  Stream stream_;
  std::vector<Scrambling> axes_;  ///< One for each axis that has direction numbers.
};

}  // namespace hfta::search
