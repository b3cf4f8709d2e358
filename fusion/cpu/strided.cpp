#include "fusion/cpu/strided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>

#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/pointwise.hpp"
#include "fusion/cpu/kernels/reduce.hpp"

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

// Dimensions in the order given; those that lie behind one another in all tensors are joined.
Loops joined(const std::vector<Tensor>& tensors, const std::vector<std::size_t>& order) {
  constexpr std::size_t kMostDims = 15;  // what for_each_row() counts with
  const Dims& sizes = tensors.front().sizes;
  if (order.size() > kMostDims) throw ShapeError("found a tensor " + to_text(sizes) + " of too many dimensions");
  Loops loops;
  loops.strides.resize(tensors.size());
  for (const std::size_t d : order) {
    const bool joins = !loops.sizes.empty() && [&] {
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (loops.strides[t].back() != tensors[t].strides[d] * sizes[d]) return false;
      }
      return true;
    }();
    if (joins) {
      loops.sizes.back() *= sizes[d];
    } else {
      loops.sizes.push_back(sizes[d]);
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

// Dimensions of more than one element, in the order of a tensor's memory, so that it is walked forwards.
std::vector<std::size_t> in_memory_order(const Tensor& tensor) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  return order;
}

// Loops that add `from` to `to`, which has repeated elements. Innermost is the dimension in which `from` is walked
// element by element, behind it those that are summed over, outermost those that are not: a team shares them.
struct SumLoops {
  Loops loops;
  std::int64_t summed = 1;  // innermost loops that go to the same elements
};

SumLoops sum_loops(const Tensor& from, const Tensor& to) {
  std::vector<std::size_t> order = in_memory_order(from);
  std::stable_partition(order.begin(), order.end() - 1, [&](std::size_t d) { return to.strides[d] != 0; });
  SumLoops result{joined({to, from}, order), 1};
  const Loops& loops = result.loops;
  for (std::size_t d = loops.sizes.size() - 1; d-- > 0 && loops.strides[0][d] == 0;) result.summed *= loops.sizes[d];
  return result;
}

template <typename T>
void add_row(const T* from, std::int64_t in, T* to, std::int64_t out, std::int64_t count) {
  if (in == 1 && out == 1) return combine(nullptr, Binary::kAdd, 1, to, 1, from, 1, to, count);
  if (in == 1 && out == 0) {
    T sum = 0;
    sum_fold(nullptr, {1, count, 1}, from, 1, &sum);
    *to += sum;
    return;
  }
  copy_row(from, in, to, out, count, true);
}

template <typename T>
Kernel summing_copy(const Tensor& from, const Tensor& to) {
  const SumLoops sums = sum_loops(from, to);
  const std::int64_t count = sums.loops.sizes.back();
  const std::int64_t out = sums.loops.strides[0].back(), in = sums.loops.strides[1].back();
  const std::int64_t owners = rows_of(sums.loops) / sums.summed;
  return [=](const Run& run) {
    T* const y = run.at<T>(to);
    const T* const x = run.at<T>(from);
    share(run.team, stretches_of(owners, sums.summed * count), [&](std::int64_t first, std::int64_t some, int) {
      for_some_rows(sums.loops, first * sums.summed, some * sums.summed,
                    [&](const std::int64_t* at) { add_row(x + at[1], in, y + at[0], out, count); });
    });
  };
}

template <typename T>
Kernel typed_copy(const Tensor& from, const Tensor& to, bool add) {
  const bool sums = std::find(to.strides.begin(), to.strides.end(), 0) != to.strides.end();
  const Loops loops = loops_over({to, from});
  if constexpr (std::is_floating_point_v<T>) {
    if (!add && turns(loops)) return turning_copy<T>(from, to, loops);
    if (add && sums && to.numel() > 1) return summing_copy<T>(from, to);
  }
  const std::int64_t count = loops.sizes.back(), out = loops.strides[0].back(), in = loops.strides[1].back();
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

Loops loops_over(const std::vector<Tensor>& tensors) {
  const Tensor& first = tensors.front();
  if (first.sizes.size() > kMostLoops) throw ShapeError(fmt::format("found a tensor of {} dimensions", first.dim()));
  return joined(tensors, in_memory_order(first));
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
