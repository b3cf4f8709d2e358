#include "fusion/cpu/strided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>

#include "fusion/cpu/kernels/pack.hpp"

namespace hfta::fusion::cpu {
namespace {

// The two innermost loops are a transposition: images that come with channels first, or go so into a linear layer.
bool turns(const Loops& loops) {
  const std::size_t dims = loops.sizes.size();
  return dims >= 2 && loops.strides[0][dims - 1] == 1 && loops.strides[1][dims - 2] == 1 &&
         loops.strides[0][dims - 2] >= loops.sizes[dims - 1] && loops.strides[1][dims - 1] >= loops.sizes[dims - 2];
}

template <typename T>
Kernel turning_copy(const Tensor& from, const Tensor& to, Loops loops) {
  const std::size_t dims = loops.sizes.size();
  const std::int64_t rows = loops.sizes[dims - 1], columns = loops.sizes[dims - 2];
  const std::int64_t ld = loops.strides[1][dims - 1], ldt = loops.strides[0][dims - 2];
  loops.sizes.back() = 1;
  loops.sizes[dims - 2] = 1;
  return [=](const Run& run) {
    T* const y = run.at<T>(to);
    const T* const x = run.at<T>(from);
    share(run.team, stretches_of(rows_of(loops), rows * columns), [&](std::int64_t first, std::int64_t count, int) {
      for_some_rows(loops, first, count,
                    [&](const std::int64_t* at) { transpose(x + at[1], ld, rows, columns, y + at[0], ldt); });
    });
  };
}

template <typename T>
void copy_row(const T* from, std::int64_t in, T* to, std::int64_t out, std::int64_t count, bool add) {
  if (!add && out == 1 && in == 1) {
    std::copy_n(from, count, to);
  } else if (add) {
    for (std::int64_t i = 0; i < count; ++i) to[i * out] = static_cast<T>(to[i * out] + from[i * in]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * out] = from[i * in];
  }
}

template <typename T>
Kernel typed_copy(const Tensor& from, const Tensor& to, bool add) {
  const Loops loops = loops_over({to, from});
  if constexpr (std::is_floating_point_v<T>) {
    if (!add && turns(loops)) return turning_copy<T>(from, to, loops);
  }
  const std::int64_t count = loops.sizes.back(), out = loops.strides[0].back(), in = loops.strides[1].back();
  const Dims& strides = loops.strides[0];
  const bool sums = std::find(strides.begin(), strides.end(), 0) != strides.end();  // elements of several owners
  const bool one = rows_of(loops) == 1 && !sums;
  return [=](const Run& run) {
    T* const y = run.at<T>(to);
    const T* const x = run.at<T>(from);
    if (one) {
      constexpr std::int64_t kUnit = 64;
      return share(run.team, stretches_of(count, 1, kUnit), [&](std::int64_t first, std::int64_t some, int) {
        copy_row(x + first * in, in, y + first * out, out, some, add);
      });
    }
    for_each_row(sums ? nullptr : run.team, loops,
                 [&](const std::int64_t* at) { copy_row(x + at[1], in, y + at[0], out, count, add); });
  };
}

}  // namespace

// The order of dimensions is that of the first tensor's memory, so that it is walked forwards.
Loops loops_over(const std::vector<Tensor>& tensors) {
  const Tensor& first = tensors.front();
  if (first.sizes.size() > kMostLoops) throw ShapeError(fmt::format("found a tensor of {} dimensions", first.dim()));
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < first.sizes.size(); ++d) {
    if (first.sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return first.strides[a] > first.strides[b]; });
  constexpr std::size_t kMostDims = 15;  // what for_each_row() counts with
  if (order.size() > kMostDims) throw ShapeError("found a tensor " + to_text(first.sizes) + " of too many dimensions");
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

std::int64_t rows_of(const Loops& loops) {
  return std::accumulate(loops.sizes.begin(), loops.sizes.end() - 1, std::int64_t{1}, std::multiplies<>());
}

Kernel copy_kernel(const Tensor& from, const Tensor& to, bool add) {
  if (from.dtype != to.dtype || from.sizes != to.sizes) {
    throw ShapeError("found a copy of " + to_text(from.sizes) + " to " + to_text(to.sizes) + ", or to another dtype");
  }
  switch (from.dtype) {
    case DType::kFloat32:
      return typed_copy<float>(from, to, add);
    case DType::kFloat64:
      return typed_copy<double>(from, to, add);
    case DType::kInt64:
      return typed_copy<std::int64_t>(from, to, add);
    case DType::kInt32:
      return typed_copy<std::int32_t>(from, to, add);
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return typed_copy<std::uint8_t>(from, to, add);
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      break;
    case DType::kComplex64:
    case DType::kComplex128:
      throw ShapeError("found complex numbers");
  }
  // Two bytes each, whatever they mean; nothing that is added up is of these.
  if (add) throw ShapeError("found a sum of a dtype that is not computed with");
  return typed_copy<std::uint16_t>(from, to, false);
}

}  // namespace hfta::fusion::cpu
