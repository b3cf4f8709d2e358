#include "fusion/cpu/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.hpp"
#include "fusion/graph/broadcast.hpp"

namespace hfta::fusion::cpu {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  // beyond any memory; their bytes fit 64 bits

}  // namespace

std::string to_text(std::span<const std::int64_t> sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t all = 1, largest = 1;  // largest: as if no size were 0, since others count on products of sizes
  for (const std::int64_t size : sizes) {
    const std::int64_t counted = std::max<std::int64_t>(size, 1);
    if (size < 0 || counted > kMostElements / largest) {
      throw ShapeError(fmt::format("found sizes {}, wanted none below 0 and what a machine can hold", to_text(sizes)));
    }
    all *= size;
    largest *= counted;
  }
  return all;
}

Dims inferred(Dims wanted, std::int64_t elements) {
  const auto open = std::find(wanted.begin(), wanted.end(), -1);
  const Dims given = wanted;
  if (open != wanted.end()) {
    *open = 1;
    const std::int64_t rest = product(wanted);
    if (rest == 0) throw ShapeError(fmt::format("found sizes {}, in which -1 may be anything", to_text(given)));
    *open = elements / rest;
  }
  if (product(wanted) == elements) return wanted;
  throw ShapeError(fmt::format("found sizes {} for {} elements", to_text(given), elements));
}

Dims inverse(std::span<const std::int64_t> order) {
  Dims back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return back;
}

Dims row_major(const Dims& sizes) {
  static_cast<void>(product(sizes));  // so that no stride leaves 64 bits
  Dims strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  return strides;
}

std::size_t Tensor::index(std::int64_t d) const {
  if (d < -dim() || d >= dim()) {
    throw ShapeError(fmt::format("found dimension {} of a tensor {}, which has {}", d, to_text(sizes), dim()));
  }
  return static_cast<std::size_t>(d < 0 ? d + dim() : d);
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
  std::vector<bool> taken(sizes.size(), false);
  for (const std::int64_t d : order) taken[index(d)] = true;
  if (order.size() != sizes.size() || std::find(taken.begin(), taken.end(), false) != taken.end()) {
    throw ShapeError(
        fmt::format("found the order {} for a tensor {}, wanted each dimension once", to_text(order), to_text(sizes)));
  }
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
  const bool inside = begin >= 0 && count >= 0 && step >= 1 && begin <= sizes[at] &&
                      (count == 0 || (begin < sizes[at] && count - 1 <= (sizes[at] - 1 - begin) / step));
  if (!inside) {
    throw ShapeError(
        fmt::format("found {} elements from {} on in steps of {}, of a size of {}", count, begin, step, sizes[at]));
  }
  out.offset += begin * strides[at];
  out.sizes[at] = count;
  if (count > 1) out.strides[at] *= step;  // an only element has no next one
  return out;
}

Tensor Tensor::selected(std::int64_t d, std::int64_t at) const {
  Tensor out = sliced(d, at, 1);
  const auto position = static_cast<std::ptrdiff_t>(index(d));
  out.sizes.erase(out.sizes.begin() + position);
  out.strides.erase(out.strides.begin() + position);
  return out;
}

void Tensor::insert(std::int64_t d) {
  if (d < -dim() - 1 || d > dim()) {
    throw ShapeError(fmt::format("found dimension {} for a new one among {}", d, dim() + 1));
  }
  const std::int64_t at = d < 0 ? d + dim() + 1 : d;
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, 0);
}

Tensor Tensor::expanded(const Dims& wanted) const {
  static_cast<void>(product(wanted));
  if (wanted.size() < sizes.size()) {
    throw ShapeError(fmt::format("found sizes {}, wanted such that repeat {}", to_text(wanted), to_text(sizes)));
  }
  Tensor out = *this;
  out.sizes = wanted;
  out.strides.assign(wanted.size(), 0);
  const std::size_t missing = wanted.size() - sizes.size();
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == wanted[d + missing]) {
      out.strides[d + missing] = strides[d];
    } else if (sizes[d] != 1) {
      throw ShapeError(fmt::format("found sizes {}, which do not repeat to {}", to_text(sizes), to_text(wanted)));
    }
  }
  return out;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const std::optional<Shape> both = fusion::broadcast(a, b);
  if (both) return *both;
  throw ShapeError(fmt::format("found tensors {} and {}, which do not broadcast", to_text(a), to_text(b)));
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
