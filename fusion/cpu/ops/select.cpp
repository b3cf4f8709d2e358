// Parts of tensors, and tensors put together. Parts are views; putting together copies.
#include <algorithm>
#include <numeric>

#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

// `at` is any integer of 64 bits, and so is what comes out; a size is never negative, so no sum leaves 64 bits.
std::int64_t counted_from_front(std::int64_t at, std::int64_t size) { return at < 0 ? at + size : at; }

// a / b rounded up, for a >= 0 and any b > 0.
std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// ---- Parts ----

// Binds the node's outputs to stretches of a dimension, one behind another; the last ones may have no name.
void bind_stretches(LoweringContext& site, const Tensor& x, std::int64_t dim, const Dims& counts) {
  std::int64_t left = x.size(dim);
  for (const std::int64_t count : counts) {
    if (count < 0 || count > left) site.fail("its sizes do not fit");
    left -= count;
  }
  if (left != 0) site.fail("its sizes do not fit");
  if (counts.size() < site.node().outputs.size()) site.fail("it has fewer parts than outputs");
  std::int64_t begin = 0;
  for (std::size_t o = 0; o < site.node().outputs.size(); ++o) {
    site.bind(x.sliced(dim, begin, counts[o]), o);
    begin += counts[o];
  }
}

// A dimension without elements has one stretch, which has no elements.
void bind_stretches_of(LoweringContext& site, std::int64_t length, std::int64_t dim) {
  const Tensor x = site.tensor(0);
  if (length < 0 || (length == 0 && x.size(dim) > 0)) site.fail("its parts have no length");
  Dims counts;
  for (std::int64_t left = x.size(dim); left > 0; left -= counts.back()) counts.push_back(std::min(length, left));
  if (counts.empty()) counts.push_back(0);
  bind_stretches(site, x, dim, counts);
}

// Schema: input, chunks, dim.
void chunk(LoweringContext& site) {
  const std::int64_t chunks = site.integer(1), dim = site.integer(2), size = site.tensor(0).size(dim);
  if (chunks < 1) site.fail("it makes no parts");
  if (size == 0) return bind_stretches(site, site.tensor(0), dim, Dims(site.node().outputs.size(), 0));
  bind_stretches_of(site, divided_up(size, chunks), dim);
}

// Schema: input, split_size, dim.
void split(LoweringContext& site) { bind_stretches_of(site, site.integer(1), site.integer(2)); }

// Schema: input, split_sizes, dim.
void split_with_sizes(LoweringContext& site) { bind_stretches(site, site.tensor(0), site.integer(2), site.ints(1)); }

// Schema: input, dim.
void unbind(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t dim = site.integer(1);
  if (x.size(dim) < static_cast<std::int64_t>(site.node().outputs.size())) site.fail("it has fewer parts than outputs");
  for (std::size_t o = 0; o < site.node().outputs.size(); ++o) {
    site.bind(x.selected(dim, static_cast<std::int64_t>(o)), o);
  }
}

// Schema: input, dim, index.
void select(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t dim = site.integer(1), at = counted_from_front(site.integer(2), x.size(dim));
  if (at < 0 || at >= x.size(dim)) site.fail("its index is out of range");
  site.bind(x.selected(dim, at));
}

// Schema: input, dim, start, end, step. Bounds are any integers: "to the end" is the largest of 64 bits.
void slice(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t dim = site.integer(1), size = x.size(dim), step = site.integer(4);
  if (step < 1) site.fail("its step is not positive");
  const auto bound = [&](std::size_t i, std::int64_t fallback) {
    const std::int64_t at = site.is_none(i) ? fallback : counted_from_front(site.integer(i), size);
    return std::clamp<std::int64_t>(at, 0, size);
  };
  const std::int64_t begin = bound(2, 0), end = std::max(begin, bound(3, size));
  site.bind(x.sliced(dim, begin, divided_up(end - begin, step), step));
}

// Schema: input, dim, start, length.
void narrow(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t dim = site.integer(1), begin = counted_from_front(site.integer(2), x.size(dim));
  site.bind(x.sliced(dim, begin, site.integer(3)));
}

// ---- The same elements with other dimensions ----

Tensor squeezed(const Tensor& x, const Dims& dims) {
  if (x.dim() == 0) return x;  // ATen allows dimension 0 of a number
  Tensor out = x;
  std::vector<bool> named(x.sizes.size(), false);
  for (const std::int64_t d : dims) named[x.index(d)] = true;
  out.sizes.clear();
  out.strides.clear();
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    if (named[d] && x.sizes[d] == 1) continue;
    out.sizes.push_back(x.sizes[d]);
    out.strides.push_back(x.strides[d]);
  }
  return out;
}

// Schema: input.
void squeeze(LoweringContext& site) {
  Dims all(site.tensor(0).sizes.size());
  std::iota(all.begin(), all.end(), 0);
  site.bind(squeezed(site.tensor(0), all));
}

// Schema: input, dim.
void squeeze_dim(LoweringContext& site) { site.bind(squeezed(site.tensor(0), {site.integer(1)})); }
void squeeze_dims(LoweringContext& site) { site.bind(squeezed(site.tensor(0), site.ints(1))); }

// Schema: input, source, destination.
void movedim(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  Dims order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto from = static_cast<std::ptrdiff_t>(x.index(site.integer(1)));
  const auto to = static_cast<std::ptrdiff_t>(x.index(site.integer(2)));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  site.bind(x.permuted(order));
}

// Schema: input, dim, sizes; one size may be -1.
void unflatten(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::size_t at = x.index(site.integer(1));
  const Dims parts = inferred(site.ints(2), x.sizes[at]);
  Tensor out = x;
  const auto place = static_cast<std::ptrdiff_t>(at);
  Dims strides = row_major(parts);
  for (std::int64_t& stride : strides) stride *= x.strides[at];
  out.sizes.erase(out.sizes.begin() + place);
  out.strides.erase(out.strides.begin() + place);
  out.sizes.insert(out.sizes.begin() + place, parts.begin(), parts.end());
  out.strides.insert(out.strides.begin() + place, strides.begin(), strides.end());
  site.bind(out);
}

// Schema: input, size; -1 leaves a size as it is.
void expand(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  Dims sizes = site.ints(1);
  if (sizes.size() < x.sizes.size()) site.fail("its sizes do not fit");
  const std::size_t missing = sizes.size() - x.sizes.size();
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    std::int64_t& size = sizes[d + missing];
    if (size == -1) size = x.sizes[d];
    if (size != x.sizes[d] && x.sizes[d] != 1) site.fail("its sizes do not fit");
  }
  site.bind(x.expanded(sizes));
}

// Schema: input, other.
void expand_as(LoweringContext& site) { site.bind(site.tensor(0).expanded(site.tensor(1).sizes)); }

void clone(LoweringContext& site) { site.bind(copy_of(site.b, site.tensor(0))); }

}  // namespace

// ---- Putting together ----

Tensor joined(LoweringContext& site, const std::vector<Tensor>& parts, std::int64_t dim) {
  Builder& b = site.b;
  Dims sizes = parts.front().sizes;
  const std::size_t at = parts.front().index(dim);
  sizes[at] = 0;
  for (const Tensor& part : parts) {
    if (part.dtype != parts.front().dtype || part.dim() != parts.front().dim()) site.fail("its inputs are not alike");
    sizes[at] += part.sizes[at];
  }
  const Tensor whole = b.fresh(sizes, parts.front().dtype);
  std::vector<Tensor> places;
  for (std::int64_t begin = 0; const Tensor& part : parts) {
    places.push_back(whole.sliced(static_cast<std::int64_t>(at), begin, part.sizes[at]));
    if (places.back().sizes != part.sizes) site.fail("its inputs' sizes do not fit");
    if (part.numel() > 0) b.emit({part, whole}, copy_kernel(part, places.back(), false));
    begin += part.sizes[at];
  }
  b.differentiable(parts, {whole}, [&b, parts, places] {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto dy = b.gradient(places[i]);
      if (dy && parts[i].numel() > 0 && b.wants_gradient(parts[i])) b.contribute(parts[i], *dy);
    }
  });
  return whole;
}

namespace {

// Schema: tensors, dim.
void cat(LoweringContext& site) {
  std::vector<Tensor> parts = site.tensors(0);
  std::erase_if(parts, [](const Tensor& t) { return t.dim() == 1 && t.numel() == 0; });  // as torch leaves them out
  if (parts.empty()) site.fail("it has no inputs");
  site.bind(joined(site, parts, site.integer(1)));
}

// Schema: tensors, dim.
void stack(LoweringContext& site) {
  std::vector<Tensor> parts = site.tensors(0);
  if (parts.empty()) site.fail("it has no inputs");
  for (const Tensor& part : parts) {
    if (part.sizes != parts.front().sizes) site.fail("its inputs' sizes do not fit");
  }
  for (Tensor& part : parts) part.insert(site.integer(1));
  site.bind(joined(site, parts, site.integer(1)));
}

}  // namespace

std::vector<NamedCompiler> select_ops() {
  return {{"aten::chunk", chunk},
          {"aten::split.Tensor", split},
          {"aten::split.sizes", split_with_sizes},
          {"aten::split_with_sizes", split_with_sizes},
          {"aten::unbind.int", unbind},
          {"aten::select.int", select},
          {"aten::slice.Tensor", slice},
          {"aten::narrow", narrow},
          {"aten::squeeze", squeeze},
          {"aten::squeeze.dim", squeeze_dim},
          {"aten::squeeze.dims", squeeze_dims},
          {"aten::movedim.int", movedim},
          {"aten::unflatten.int", unflatten},
          {"aten::expand", expand},
          {"aten::expand_as", expand_as},
          {"aten::clone", clone}};
}

std::vector<NamedCompiler> join_ops() { return {{"aten::cat", cat}, {"aten::stack", stack}}; }

}  // namespace hfta::fusion::cpu
