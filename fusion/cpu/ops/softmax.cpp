// Softmax and its logarithm, along any dimension.
#include "fusion/cpu/kernels/softmax.hpp"

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

// Fewer columns would leave most lanes empty: they are turned into rows.
constexpr std::int64_t kLeastColumns = 8;

template <typename T>
void emit_softmax(Builder& b, const Tensor& x, const Tensor& y, const SoftmaxShape& shape, bool log) {
  b.emit({x, y}, [=](const Run& run) { softmax(run.team, run.at<T>(x), run.at<T>(y), shape, log); });
  b.differentiable({x}, {y}, [=, &b] {
    const auto dy = b.gradient(y);
    if (!dy) return;
    const Builder::Part dx = b.contribute(x);
    b.emit({*dy, y, dx.tensor}, [=, dy = *dy](const Run& run) {
      softmax_backward(run.team, run.at<T>(dy), run.at<T>(y), run.at<T>(dx.tensor), shape, log, dx.add);
    });
  });
}

// Of a tensor without gaps, along that dimension.
SoftmaxShape shape_of(const Tensor& x, std::size_t dim) {
  SoftmaxShape shape{1, x.sizes[dim], 1};
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    if (d != dim) (d < dim ? shape.blocks : shape.columns) *= x.sizes[d];
  }
  return shape;
}

// Schema: input, dim, dtype or half_to_float.
template <bool kLog>
void compile_softmax(LoweringContext& site) {
  Builder& b = site.b;
  Tensor given = site.tensor(0);
  if (given.dtype != b.dtype() || given.numel() == 0) site.fail("its input is no floating-point tensor, or empty");
  const auto* dtype = site.argument<DType>(2);
  if (dtype != nullptr && *dtype != b.dtype()) site.fail("another dtype than the model's");
  if (given.dim() == 0) given = given.expanded({1});
  const std::size_t dim = given.index(site.integer(1));
  const bool turns = shape_of(given, dim).columns < kLeastColumns;
  const auto turned = [&](const Tensor& tensor) {
    return turns ? tensor.transposed(static_cast<std::int64_t>(dim), -1) : tensor;
  };
  const Tensor x = b.contiguous(turned(given));
  const Tensor y = b.fresh(x.sizes);
  const SoftmaxShape shape = shape_of(x, turns ? x.sizes.size() - 1 : dim);
  typed(b.dtype(), [&]<typename T>() { emit_softmax<T>(b, x, y, shape, kLog); });
  Tensor out = turned(y);
  out.sizes = site.tensor(0).sizes;
  out.strides.resize(out.sizes.size());
  site.bind(out);
}

}  // namespace

std::vector<NamedCompiler> softmax_ops() {
  return {{"aten::softmax.int", compile_softmax<false>},
          {"aten::_softmax", compile_softmax<false>},
          {"aten::log_softmax.int", compile_softmax<true>},
          {"aten::_log_softmax", compile_softmax<true>}};
}

}  // namespace hfta::fusion::cpu
