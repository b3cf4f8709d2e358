#include "fusion/cpu/tensor.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace hfta::fusion::cpu {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Dims inverse(std::span<const std::int64_t> order) {
  Dims back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return back;
}

Dims row_major(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  return strides;
}

std::int64_t Tensor::numel() const { return product(sizes); }

bool Tensor::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Tensor::dense() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // stride, size
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) order.emplace_back(strides[d], sizes[d]);
  }
  std::sort(order.begin(), order.end());
  std::int64_t expected = 1;
  for (const auto& [stride, size] : order) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

Tensor Tensor::permuted(std::span<const std::int64_t> order) const {
  Tensor out = *this;
  for (std::size_t d = 0; d < order.size(); ++d) {
    out.sizes[d] = size(order[d]);
    out.strides[d] = stride(order[d]);
  }
  return out;
}

Tensor Tensor::transposed(std::int64_t a, std::int64_t b) const {
  Tensor out = *this;
  std::swap(out.sizes[index(a)], out.sizes[index(b)]);
  std::swap(out.strides[index(a)], out.strides[index(b)]);
  return out;
}

Tensor Tensor::sliced(std::int64_t d, std::int64_t begin, std::int64_t count, std::int64_t step) const {
  Tensor out = *this;
  const std::size_t at = index(d);
  out.offset += begin * strides[at];
  out.sizes[at] = count;
  out.strides[at] *= step;
  return out;
}

Tensor Tensor::selected(std::int64_t d, std::int64_t at) const {
  Tensor out = sliced(d, at, 1);
  const auto position = static_cast<std::ptrdiff_t>(index(d));
  out.sizes.erase(out.sizes.begin() + position);
  out.strides.erase(out.strides.begin() + position);
  return out;
}

Tensor Tensor::expanded(const Dims& wanted) const {
  Tensor out = *this;
  out.sizes = wanted;
  out.strides.assign(wanted.size(), 0);
  const std::size_t missing = wanted.size() - sizes.size();
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == wanted[d + missing]) {
      out.strides[d + missing] = strides[d];
    } else if (sizes[d] != 1) {
      throw Error(ErrorKind::kInternal, "expand: found sizes that do not broadcast");
    }
  }
  return out;
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()), 1);
  for (const Dims* sizes : {&a, &b}) {
    const std::size_t missing = out.size() - sizes->size();
    for (std::size_t d = 0; d < sizes->size(); ++d) {
      if ((*sizes)[d] != 1) out[d + missing] = (*sizes)[d];
    }
  }
  return out;
}

// Runs of dimensions that lie behind one another in memory can be cut anew; the borders between runs must stay.
bool view_strides(const Tensor& t, const Dims& wanted, Dims& strides) {
  strides.assign(wanted.size(), 1);
  if (t.numel() == 0) {
    strides = row_major(wanted);
    return true;
  }
  std::size_t w = wanted.size();
  std::int64_t run = 1, step = 1;
  const auto cut = [&] {  // gives the run to wanted dimensions
    std::int64_t left = run;
    while (w > 0 && (left > 1 || wanted[w - 1] == 1)) {
      const std::int64_t size = wanted[w - 1];
      if (left % size != 0) return false;
      strides[--w] = step;
      step *= size;
      left /= size;
    }
    return left == 1;
  };
  for (std::size_t d = t.sizes.size(); d-- > 0;) {
    if (t.sizes[d] == 1) continue;
    if (run > 1 && t.strides[d] != step * run) {
      if (!cut()) return false;
      run = 1;
    }
    if (run == 1) step = t.strides[d];
    run *= t.sizes[d];
  }
  return cut() && w == 0;
}

}  // namespace hfta::fusion::cpu
