// Sums, means, norms and largest elements along dimensions.
#include "fusion/cpu/kernels/reduce.hpp"

#include <algorithm>
#include <numeric>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

// A reduction laid out for the kernels: x's elements as [outer, n, inner] in memory, y [outer, inner].
struct Reduction {
  Fold fold;
  Tensor x, y;             // y with x's sizes, those of dimensions that go being 1
  std::vector<bool> goes;  // by x's dimension
};

std::vector<bool> dimensions(LoweringContext& site, const Tensor& x, const Dims& given) {
  std::vector<bool> goes(x.sizes.size(), given.empty());
  for (const std::int64_t d : given) {
    if (x.dim() == 0) continue;
    if (d < -x.dim() || d >= x.dim()) site.fail("it has no such dimension");
    goes[x.index(d)] = true;
  }
  return goes;
}

// Dimensions in the order in which they lie in memory, outermost first.
std::vector<std::size_t> in_memory(const Tensor& x) {
  std::vector<std::size_t> order(x.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return x.strides[a] > x.strides[b]; });
  return order;
}

// Whether those that go are neighbours.
bool foldable(const Tensor& x, const std::vector<bool>& goes) {
  int changes = 0;
  bool last = false;
  for (const std::size_t d : in_memory(x)) {
    if (x.sizes[d] == 1) continue;
    changes += goes[d] != last ? 1 : 0;
    last = goes[d];
  }
  return x.dense() && changes <= 2;
}

Reduction reduction(LoweringContext& site, const Dims& dims) {
  Builder& b = site.b;
  Reduction r;
  r.x = site.tensor(0);
  if (r.x.dtype != b.dtype() || r.x.numel() == 0) site.fail("its input is no floating-point tensor, or empty");
  r.goes = dimensions(site, r.x, dims);
  if (!foldable(r.x, r.goes)) {  // those that go become the innermost
    Dims order;
    for (const bool goes : {false, true}) {
      for (std::size_t d = 0; d < r.goes.size(); ++d) {
        if (r.goes[d] == goes) order.push_back(static_cast<std::int64_t>(d));
      }
    }
    r.x = b.contiguous(r.x.permuted(order)).permuted(inverse(order));
  }
  const auto order = in_memory(r.x);
  Dims kept(order.size()), back(order.size());
  bool inside = false;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t d = order[place];
    kept[place] = r.goes[d] ? 1 : r.x.sizes[d];
    back[d] = static_cast<std::int64_t>(place);
    if (r.x.sizes[d] == 1) continue;
    inside = inside || r.goes[d];
    (r.goes[d] ? r.fold.n : inside ? r.fold.inner : r.fold.outer) *= r.x.sizes[d];
  }
  r.y = b.fresh(kept).permuted(back);
  return r;
}

Tensor shaped(Tensor y, const std::vector<bool>& goes, bool keep) {
  for (std::size_t d = goes.size(); !keep && d-- > 0;) {
    if (!goes[d]) continue;
    y.sizes.erase(y.sizes.begin() + static_cast<std::ptrdiff_t>(d));
    y.strides.erase(y.strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
  return y;
}

void refuse_dtype(LoweringContext& site, std::size_t i) {
  const auto* dtype = site.argument<DType>(i);
  if (dtype != nullptr && *dtype != site.b.dtype()) site.fail("another dtype than the model's");
}

void sum_or_mean(LoweringContext& site, const Dims& dims, bool keep, bool mean) {
  Builder& b = site.b;
  const Reduction r = reduction(site, dims);
  const double scale = mean ? 1.0 / static_cast<double>(r.fold.n) : 1.0;
  typed(b.dtype(), [&]<typename T>() {
    b.emit({r.x, r.y}, [=](const Run& run) { sum_fold(run.team, r.fold, run.at<T>(r.x), scale, run.at<T>(r.y)); });
    b.differentiable({r.x}, {r.y}, [=, &b] {
      const auto dy = b.gradient(r.y);
      if (!dy) return;
      const Builder::Part dx = b.contribute(r.x);
      b.emit({*dy, dx.tensor}, [=, dy = *dy](const Run& run) {
        spread_fold(run.team, r.fold, run.at<T>(dy), scale, run.at<T>(dx.tensor), dx.add);
      });
    });
  });
  site.bind(shaped(r.y, r.goes, keep));
}

Dims dims_or_none(LoweringContext& site, std::size_t i) { return site.is_none(i) ? Dims{} : site.ints(i); }

// Schema: input, dim, keepdim, dtype.
template <bool kMean>
void along(LoweringContext& site) {
  refuse_dtype(site, 3);
  sum_or_mean(site, dims_or_none(site, 1), site.flag(2), kMean);
}

// Schema: input, dtype.
template <bool kMean>
void of_all(LoweringContext& site) {
  refuse_dtype(site, 1);
  sum_or_mean(site, {}, false, kMean);
}

// Schema: input, order, dim, keepdim, and of linalg_vector_norm dtype.
void norm(LoweringContext& site) {
  if (!site.is_none(1) && site.number(1) != 2) site.fail("a norm that is not Euclidean");
  if (site.node().args.size() > 4) refuse_dtype(site, 4);
  Builder& b = site.b;
  const Reduction r = reduction(site, dims_or_none(site, 2));
  typed(b.dtype(), [&]<typename T>() {
    b.emit({r.x, r.y}, [=](const Run& run) { norm_fold(run.team, r.fold, run.at<T>(r.x), run.at<T>(r.y)); });
    b.differentiable({r.x}, {r.y}, [=, &b] {
      const auto dy = b.gradient(r.y);
      if (!dy) return;
      const Builder::Part dx = b.contribute(r.x);
      b.emit({*dy, r.x, r.y, dx.tensor}, [=, dy = *dy](const Run& run) {
        norm_fold_backward(run.team, r.fold, run.at<T>(dy), run.at<T>(r.x), run.at<T>(r.y), run.at<T>(dx.tensor),
                           dx.add);
      });
    });
  });
  site.bind(shaped(r.y, r.goes, site.flag(3)));
}

// `positions`: undefined if they are not wanted.
void largest(LoweringContext& site, const Reduction& r, const Tensor& positions) {
  Builder& b = site.b;
  typed(b.dtype(), [&]<typename T>() {
    const auto at = [positions](const Run& run) {
      return positions.defined() ? run.at<std::int64_t>(positions) : nullptr;
    };
    b.emit({r.x, r.y, positions},
           [=](const Run& run) { max_fold(run.team, r.fold, run.at<T>(r.x), run.at<T>(r.y), at(run)); });
    b.differentiable({r.x}, {r.y}, [=, &b] {
      const auto dy = b.gradient(r.y);
      if (!dy) return;
      const Builder::Part dx = b.contribute(r.x);
      b.emit({*dy, r.x, r.y, positions, dx.tensor}, [=, dy = *dy](const Run& run) {
        max_fold_backward(run.team, r.fold, run.at<T>(dy), run.at<T>(r.x), run.at<T>(r.y), at(run),
                          run.at<T>(dx.tensor), dx.add);
      });
    });
  });
}

// Schema: input, dim, keepdim.
void amax(LoweringContext& site) {
  const Reduction r = reduction(site, site.ints(1));
  largest(site, r, {});
  site.bind(shaped(r.y, r.goes, site.flag(2)));
}

// Schema: input, dim, keepdim; the second output is the positions.
void max_dim(LoweringContext& site) {
  const Reduction r = reduction(site, {site.integer(1)});
  Tensor positions = site.b.fresh(r.y.sizes, DType::kInt64);
  positions.strides = r.y.strides;
  largest(site, r, positions);
  site.bind(shaped(r.y, r.goes, site.flag(2)));
  if (site.node().outputs.size() > 1) site.bind(shaped(positions, r.goes, site.flag(2)), 1);
}

}  // namespace

std::vector<NamedCompiler> reduce_ops() {
  return {{"aten::sum.dim_IntList", along<false>},
          {"aten::mean.dim", along<true>},
          {"aten::sum", of_all<false>},
          {"aten::mean", of_all<true>},
          {"aten::linalg_vector_norm", norm},
          {"aten::norm.ScalarOpt_dim", norm},
          {"aten::amax", amax},
          {"aten::max.dim", max_dim}};
}

}  // namespace hfta::fusion::cpu
