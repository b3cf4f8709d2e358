// Softmax and its logarithm, along any dimension.
#include "fusion/cpu/kernels/softmax.hpp"

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
void emit_softmax(Builder& b, const Tensor& x, const Tensor& y, bool log) {
  const std::int64_t n = x.sizes.back(), rows = x.numel() / n;
  b.emit({x, y}, [=](const Run& run) { softmax_rows(run.team, run.at<T>(x), run.at<T>(y), rows, n, log); });
  b.differentiable({x}, {y}, [=, &b] {
    const auto dy = b.gradient(y);
    if (!dy) return;
    const Builder::Part dx = b.contribute(x);
    b.emit({*dy, y, dx.tensor}, [=, dy = *dy](const Run& run) {
      softmax_rows_backward(run.team, run.at<T>(dy), run.at<T>(y), run.at<T>(dx.tensor), rows, n, log, dx.add);
    });
  });
}

// Schema: input, dim, dtype or half_to_float.
template <bool kLog>
void softmax(LoweringContext& site) {
  Builder& b = site.b;
  Tensor given = site.tensor(0);
  if (given.dtype != b.dtype() || given.numel() == 0) site.fail("its input is no floating-point tensor, or empty");
  const auto* dtype = site.argument<DType>(2);
  if (dtype != nullptr && *dtype != b.dtype()) site.fail("another dtype than the model's");
  if (given.dim() == 0) given = given.expanded({1});
  const auto dim = static_cast<std::int64_t>(given.index(site.integer(1)));
  const Tensor x = b.contiguous(given.transposed(dim, -1));
  const Tensor y = b.fresh(x.sizes);
  typed(b.dtype(), [&]<typename T>() { emit_softmax<T>(b, x, y, kLog); });
  Tensor out = y.transposed(dim, -1);
  out.sizes = site.tensor(0).sizes;
  out.strides.resize(out.sizes.size());
  site.bind(out);
}

}  // namespace

std::vector<NamedCompiler> softmax_ops() {
  return {{"aten::softmax.int", softmax<false>},
          {"aten::_softmax", softmax<false>},
          {"aten::log_softmax.int", softmax<true>},
          {"aten::_log_softmax", softmax<true>}};
}

}  // namespace hfta::fusion::cpu
