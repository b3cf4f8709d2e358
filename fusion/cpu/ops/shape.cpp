// Views: they cost nothing, and neither do their gradients.
#include <algorithm>
#include <numeric>

#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

void view_as(LoweringContext& site, const Dims& sizes) {
  Builder& b = site.b;
  Tensor x = site.tensor(0);
  if (product(sizes) != x.numel()) site.fail("its sizes do not fit");
  Dims strides;
  if (!view_strides(x, sizes, strides)) {
    x = b.contiguous(x);
    strides = row_major(sizes);
  }
  x.sizes = sizes;
  x.strides = strides;
  site.bind(x);
}

// Schema: input, size; one size may be -1.
void view(LoweringContext& site) { view_as(site, inferred(site.ints(1), site.tensor(0).numel())); }

// Schema: input, other.
void reshape_as(LoweringContext& site) { view_as(site, inferred(site.tensor(1).sizes, site.tensor(0).numel())); }

// Schema: input, start_dim, end_dim.
void flatten(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  if (x.dim() == 0) return view_as(site, {1});
  const std::size_t first = x.index(site.integer(1)), last = x.index(site.integer(2));
  if (first > last) site.fail("its first dimension lies behind its last");
  Dims sizes(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(first));
  sizes.push_back(1);
  for (std::size_t d = first; d <= last; ++d) sizes.back() *= x.sizes[d];
  sizes.insert(sizes.end(), x.sizes.begin() + static_cast<std::ptrdiff_t>(last) + 1, x.sizes.end());
  view_as(site, sizes);
}

// Schema: input, dim.
void unsqueeze(LoweringContext& site) {
  Tensor x = site.tensor(0);
  x.insert(site.integer(1));
  site.bind(x);
}

// Schema: input, dim0, dim1.
void transpose(LoweringContext& site) { site.bind(site.tensor(0).transposed(site.integer(1), site.integer(2))); }

void t(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  site.bind(x.dim() < 2 ? x : x.transposed(0, 1));
}

// Schema: input, dims.
void permute(LoweringContext& site) { site.bind(site.tensor(0).permuted(site.ints(1))); }

void same(LoweringContext& site) { site.bind(site.tensor(0)); }

// Whoever needs another order asks for it; but a copy of a buffer stays what it is when the buffer is written.
void contiguous(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  site.bind(x.contiguous() ? x : copy_of(site.b, x));
}

// A gradient belongs to a buffer: where one is wanted of the input, the output has a buffer of its own.
void detach(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  site.bind(site.b.wants_gradient(x) ? site.b.copied(x) : x);
}

}  // namespace

std::vector<NamedCompiler> shape_ops() {
  return {{"aten::view", view},
          {"aten::reshape", view},
          {"aten::_unsafe_view", view},
          {"aten::flatten.using_ints", flatten},
          {"aten::unsqueeze", unsqueeze},
          {"aten::transpose.int", transpose},
          {"aten::t", t},
          {"aten::permute", permute},
          {"aten::alias", same},
          {"aten::detach", detach},
          {"aten::contiguous", contiguous},
          {"aten::view_as", reshape_as},
          {"aten::reshape_as", reshape_as}};
}

}  // namespace hfta::fusion::cpu
