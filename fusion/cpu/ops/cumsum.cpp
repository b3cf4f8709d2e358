// Running sums along a dimension.
#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

// y[i] = x[0] + ... + x[i] of each row of n; backwards x[i] + ... + x[n - 1]. Sums are taken in float64, as ATen does.
template <typename T>
void running_sums(const T* x, T* y, std::int64_t rows, std::int64_t n, bool backwards, bool add) {
  const std::int64_t first = backwards ? n - 1 : 0, step = backwards ? -1 : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t k = 0, i = row * n + first; k < n; ++k, i += step) {
      sum += static_cast<double>(x[i]);
      y[i] = add ? y[i] + static_cast<T>(sum) : static_cast<T>(sum);
    }
  }
}

template <typename T>
void emit_cumsum(Builder& b, const Tensor& x, const Tensor& y) {
  const std::int64_t n = x.sizes.back(), rows = x.numel() / n;
  b.emit({x, y}, [=](const Run& run) { running_sums<T>(run.at<T>(x), run.at<T>(y), rows, n, false, false); });
  b.differentiable({x}, {y}, [=, &b] {
    const auto dy = b.gradient(y);
    if (!dy) return;
    const Builder::Part dx = b.contribute(x);
    b.emit({*dy, dx.tensor}, [=, dy = *dy](const Run& run) {
      running_sums<T>(run.at<T>(dy), run.at<T>(dx.tensor), rows, n, true, dx.add);
    });
  });
}

// Schema: input, dim, dtype.
void cumsum(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor given = site.floats(0);
  const auto* dtype = site.argument<DType>(2);
  if (dtype != nullptr && *dtype != b.dtype()) site.fail("another dtype than the model's");
  if (given.dim() == 0) site.fail("its input has no dimension");
  const auto dim = static_cast<std::int64_t>(given.index(site.integer(1)));
  const Tensor x = b.contiguous(given.transposed(dim, -1));
  const Tensor y = b.fresh(x.sizes);
  typed(b.dtype(), [&]<typename T>() { emit_cumsum<T>(b, x, y); });
  site.bind(y.transposed(dim, -1));
}

}  // namespace

std::vector<NamedCompiler> cumsum_ops() { return {{"aten::cumsum", cumsum}}; }

}  // namespace hfta::fusion::cpu
