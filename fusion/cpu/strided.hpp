#pragma once
/// Kernels over tensors of any strides.

#include "fusion/cpu/compiled_graph.hpp"

namespace hfta::fusion::cpu {

/// Loops over the elements of `inner` dimensions of several tensors of equal sizes: dimensions that lie behind one
/// another in all of them are joined, the last is the innermost.
struct Loops {
  Dims sizes;
  std::vector<Dims> strides;  ///< By tensor.
};
inline constexpr std::size_t kMostLoops = 16;
/// Throws ShapeError for tensors of more dimensions than kMostLoops.
[[nodiscard]] Loops loops_over(const std::vector<Tensor>& tensors);

/// `to` = `from`, or `to` += `from`; of equal sizes and dtype. A repeated (stride 0) element of `to` sums up if `add`.
[[nodiscard]] Kernel copy_kernel(const Tensor& from, const Tensor& to, bool add);

/// Number of innermost loops.
[[nodiscard]] std::int64_t rows_of(const Loops& loops);

/// Calls row(pointer of each tensor, count, stride of each) for the innermost loops [first, first + count).
template <typename Row>
void for_some_rows(const Loops& loops, std::int64_t first, std::int64_t count, Row row) {
  const std::size_t dims = loops.sizes.size(), tensors = loops.strides.size();
  std::int64_t at[kMostLoops] = {}, index[kMostLoops] = {};
  std::int64_t left = first;
  for (std::size_t d = dims - 1; d-- > 0; left /= loops.sizes[d]) {
    index[d] = left % loops.sizes[d];
    for (std::size_t t = 0; t < tensors; ++t) at[t] += loops.strides[t][d] * index[d];
  }
  for (std::int64_t r = 0; r < count; ++r) {
    row(at);
    for (std::size_t d = dims - 1; d-- > 0;) {
      for (std::size_t t = 0; t < tensors; ++t) at[t] += loops.strides[t][d];
      if (++index[d] < loops.sizes[d]) break;
      for (std::size_t t = 0; t < tensors; ++t) at[t] -= loops.strides[t][d] * loops.sizes[d];
      index[d] = 0;
    }
  }
}

/// for_some_rows() for all innermost loops, shared by the team; rows must not write to each other's elements.
template <typename Row>
void for_each_row(Team* team, const Loops& loops, Row row) {
  share(team, stretches_of(rows_of(loops), loops.sizes.back()),
        [&](std::int64_t first, std::int64_t count, int) { for_some_rows(loops, first, count, row); });
}

}  // namespace hfta::fusion::cpu
