// Products of matrices, of batches of them, and of vectors.
#include <algorithm>

#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/ops/matrices.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

Dims leading(const Tensor& t) { return {t.sizes.begin(), t.sizes.end() - 2}; }

Tensor with_leading(const Tensor& t, const Dims& leading) {
  Dims sizes = leading;
  sizes.insert(sizes.end(), t.sizes.end() - 2, t.sizes.end());
  return t.expanded(sizes);
}

// a [..., M, K] and b [..., K, N], whose leading sizes broadcast. One matrix b for all: then a is one as well, if its
// rows lie in memory so.
Tensor product(LoweringContext& site, const Tensor& left, const Tensor& right) {
  Builder& b = site.b;
  if (left.dim() < 2 || right.dim() < 2) site.fail("its inputs are no matrices");
  if (left.dtype != b.dtype() || right.dtype != b.dtype()) site.fail("its inputs are not floating-point tensors");
  if (left.size(-1) != right.size(-2) || left.numel() == 0 || right.numel() == 0) site.fail("its sizes do not fit");
  Tensor x = as_matrices(b, left), y = as_matrices(b, right);
  Dims sizes = broadcast(leading(x), leading(y));
  sizes.push_back(x.size(-2));
  sizes.push_back(y.size(-1));
  Tensor result = b.fresh(sizes);
  Tensor out = result;
  if (y.dim() == 2 && x.dim() > 2) {
    x = b.contiguous(x);
    x.sizes = {x.numel() / x.size(-1), x.size(-1)};
    x.strides = row_major(x.sizes);
    out.sizes = {x.sizes[0], sizes.back()};
    out.strides = row_major(out.sizes);
  } else {
    sizes.resize(sizes.size() - 2);
    x = with_leading(x, sizes);
    y = with_leading(y, sizes);
  }
  emit_products(b, x, y, out, false);
  b.differentiable({x, y}, {out}, [=, &b] {
    const auto given = b.gradient(out);
    if (!given) return;
    if (b.wants_gradient(x)) {
      const Builder::Part dx = b.contribute(x);
      emit_products(b, *given, y.transposed(-1, -2), dx.tensor, dx.add);
    }
    if (b.wants_gradient(y)) {
      const Builder::Part dy = b.contribute(y);
      emit_products(b, x.transposed(-1, -2), *given, dy.tensor, dy.add);
    }
  });
  return result;
}

// A vector as a matrix.
Tensor as_row(Tensor t) {
  t.sizes = {1, t.sizes.at(0)};
  t.strides = {0, t.strides.at(0)};
  return t;
}

// Schema: input, other. A vector is a row on the left, a column on the right; that dimension then goes.
void matmul(LoweringContext& site) {
  const Tensor left = site.tensor(0), right = site.tensor(1);
  if (left.dim() == 0 || right.dim() == 0) site.fail("its input has no dimensions");
  const bool row = left.dim() == 1, column = right.dim() == 1;
  Tensor y = product(site, row ? as_row(left) : left, column ? as_row(right).transposed(0, 1) : right);
  if (column) y = y.selected(-1, 0);
  if (row) y = y.selected(column ? -1 : -2, 0);
  site.bind(y);
}

// Schema: self, a, b, beta, alpha.
void add_product(LoweringContext& site) {
  const Tensor y = product(site, site.tensor(1), site.tensor(2));
  const double alpha = site.number(4), beta = site.number(3);
  if (alpha != 1) site.fail("only with an alpha of 1");
  if (beta == 0) return site.bind(y);  // whatever `self` has: memory that nobody wrote, it may be
  site.bind(added(site, y, site.tensor(0), beta));
}

}  // namespace

std::vector<NamedCompiler> matmul_ops() {
  return {{"aten::matmul", matmul}, {"aten::mm", matmul},         {"aten::bmm", matmul},
          {"aten::mv", matmul},     {"aten::addmm", add_product}, {"aten::baddbmm", add_product}};
}

}  // namespace hfta::fusion::cpu
