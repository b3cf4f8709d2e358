#include "fusion/cpu/kernels/strided.hpp"

#include <algorithm>
#include <numeric>

#include "fusion/cpu/builder.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
Kernel typed_copy(const Tensor& from, const Tensor& to, bool add) {
  const Loops loops = loops_over({to, from});
  const std::int64_t count = loops.sizes.back(), out = loops.strides[0].back(), in = loops.strides[1].back();
  return [=](const Run& run) {
    T* const y = run.at<T>(to);
    const T* const x = run.at<T>(from);
    for_each_row(loops, [&](const std::int64_t* at) {
      T* const yr = y + at[0];
      const T* const xr = x + at[1];
      if (!add && out == 1 && in == 1) {
        std::copy_n(xr, count, yr);
      } else if (add) {
        for (std::int64_t i = 0; i < count; ++i) yr[i * out] += xr[i * in];
      } else {
        for (std::int64_t i = 0; i < count; ++i) yr[i * out] = xr[i * in];
      }
    });
  };
}

}  // namespace

// The order of dimensions is that of the first tensor's memory, so that it is walked forwards.
Loops loops_over(const std::vector<Tensor>& tensors) {
  const Tensor& first = tensors.front();
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < first.sizes.size(); ++d) {
    if (first.sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return first.strides[a] > first.strides[b]; });
  Loops loops;
  loops.strides.resize(tensors.size());
  for (const std::size_t d : order) {
    const bool joins = !loops.sizes.empty() && [&] {
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (loops.strides[t].back() != tensors[t].strides[d] * first.sizes[d]) return false;
      }
      return true;
    }();
    if (joins) {
      loops.sizes.back() *= first.sizes[d];
    } else {
      loops.sizes.push_back(first.sizes[d]);
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (joins) loops.strides[t].pop_back();
      loops.strides[t].push_back(tensors[t].strides[d]);
    }
  }
  if (loops.sizes.empty()) {
    loops.sizes.push_back(1);
    for (Dims& strides : loops.strides) strides.push_back(1);
  }
  return loops;
}

Kernel copy_kernel(const Tensor& from, const Tensor& to, bool add) {
  if (from.dtype == DType::kInt64) return typed_copy<std::int64_t>(from, to, add);
  if (from.dtype == DType::kBool) return typed_copy<std::uint8_t>(from, to, add);
  return typed(from.dtype, [&]<typename T>() { return typed_copy<T>(from, to, add); });
}

}  // namespace hfta::fusion::cpu
