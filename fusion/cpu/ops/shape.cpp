// Views: they cost nothing, and neither do their gradients.
#include <algorithm>
#include <numeric>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

void view_as(Site& site, const Dims& sizes) {
  Builder& b = site.b;
  Tensor x = site.tensor(0);
  if (elements(sizes) != x.numel()) site.fail("its sizes do not fit");
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
void view(Site& site) {
  Dims sizes = site.ints(1);
  const std::int64_t all = site.tensor(0).numel();
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    *open = 1;
    *open = all / std::max<std::int64_t>(elements(sizes), 1);
  }
  view_as(site, sizes);
}

// Schema: input, other.
void reshape_as(Site& site) { view_as(site, site.tensor(1).sizes); }

// Schema: input, start_dim, end_dim.
void flatten(Site& site) {
  const Tensor x = site.tensor(0);
  if (x.dim() == 0) return view_as(site, {1});
  const std::size_t first = x.index(site.integer(1)), last = x.index(site.integer(2));
  if (first > last) site.fail("its first dimension is behind its last");
  Dims sizes(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(first));
  sizes.push_back(1);
  for (std::size_t d = first; d <= last; ++d) sizes.back() *= x.sizes[d];
  sizes.insert(sizes.end(), x.sizes.begin() + static_cast<std::ptrdiff_t>(last) + 1, x.sizes.end());
  view_as(site, sizes);
}

// Schema: input, dim.
void unsqueeze(Site& site) {
  Tensor x = site.tensor(0);
  const std::int64_t at = site.integer(1) < 0 ? site.integer(1) + x.dim() + 1 : site.integer(1);
  if (at < 0 || at > x.dim()) site.fail("it has no such dimension");
  x.sizes.insert(x.sizes.begin() + at, 1);
  x.strides.insert(x.strides.begin() + at, 0);
  site.bind(x);
}

// Schema: input, dim0, dim1.
void transpose(Site& site) { site.bind(site.tensor(0).transposed(site.integer(1), site.integer(2))); }

void t(Site& site) {
  const Tensor x = site.tensor(0);
  site.bind(x.dim() < 2 ? x : x.transposed(0, 1));
}

// Schema: input, dims.
void permute(Site& site) { site.bind(site.tensor(0).permuted(site.ints(1))); }

void same(Site& site) { site.bind(site.tensor(0)); }

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
          {"aten::contiguous", same},  // whoever needs another order asks for it
          {"aten::view_as", reshape_as},
          {"aten::reshape_as", reshape_as}};
}

}  // namespace hfta::fusion::cpu
