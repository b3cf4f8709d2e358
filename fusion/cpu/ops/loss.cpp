// Losses, PyTorch's definitions with mean reduction.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

// Classes become the last dimension; rows are samples and positions.
Tensor cross_entropy_loss(Builder& b, const Tensor& output) {
  if (output.dim() < 2) throw Error(ErrorKind::kConfig, "cross_entropy: found an output without classes");
  std::vector<std::int64_t> order(static_cast<std::size_t>(output.dim()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  if (output.dtype != b.dtype() || output.numel() == 0) throw Misfit("found an output that is empty, or no float");
  const Tensor logits = b.contiguous(output.permuted(order));
  Dims positions = logits.sizes;
  positions.pop_back();
  Tensor target = b.fresh(positions, DType::kInt64);
  const std::int64_t classes = logits.sizes.back(), rows = logits.numel() / classes;
  typed(b.dtype(), [&]<typename T>() {
    const bool wanted = b.training() && b.wants_gradient(logits);
    const Tensor gradient = wanted ? b.contribute(logits).tensor : Tensor{};
    const Tensor scratch = b.fresh({classes});
    b.emit({logits, target, scratch, gradient}, [=](const Run& run) {
      *run.loss = cross_entropy(run.at<T>(logits), run.at<std::int64_t>(target), rows, classes, run.smoothing,
                                run.at<T>(scratch), wanted ? run.at<T>(gradient) : nullptr);
    });
  });
  return target;
}

template <typename T>
struct SquaredError {
  static T value(T y, T target) { return (y - target) * (y - target); }
  static T slope(T y, T target) { return 2 * (y - target); }
};

// max(y, 0) - y t + log(1 + exp(-|y|)).
template <typename T>
struct LogisticError {
  static T value(T y, T target) { return std::max(y, T{0}) - y * target + std::log1p(std::exp(-std::abs(y))); }
  static T slope(T y, T target) { return 1 / (1 + std::exp(-y)) - target; }
};

template <template <typename> class Error_>
Tensor elementwise_loss(Builder& b, const Tensor& given) {
  if (given.dtype != b.dtype() || given.numel() == 0) throw Misfit("found an output that is empty, or no float");
  const Tensor output = b.contiguous(given);
  Tensor target = b.fresh(output.sizes);
  typed(b.dtype(), [&]<typename T>() {
    const bool wanted = b.training() && b.wants_gradient(output);
    const Tensor gradient = wanted ? b.contribute(output).tensor : Tensor{};
    const std::int64_t n = output.numel();
    b.emit({output, target, gradient}, [=](const Run& run) {
      const T* const y = run.at<T>(output);
      const T* const t = run.at<T>(target);
      double total = 0;
      for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(Error_<T>::value(y[i], t[i]));
      *run.loss = total / static_cast<double>(n);
      if (!wanted) return;
      T* const g = run.at<T>(gradient);
      const T share = static_cast<T>(1.0 / static_cast<double>(n));
      for (std::int64_t i = 0; i < n; ++i) g[i] = Error_<T>::slope(y[i], t[i]) * share;
    });
  });
  return target;
}

}  // namespace

Tensor compile_loss(Builder& b, Loss loss, const Tensor& output) {
  switch (loss) {
    case Loss::kCrossEntropy:
      return cross_entropy_loss(b, output);
    case Loss::kMse:
      return elementwise_loss<SquaredError>(b, output);
    case Loss::kBceWithLogits:
      return elementwise_loss<LogisticError>(b, output);
  }
  throw Error(ErrorKind::kInternal, "loss: found an unknown one");
}

}  // namespace hfta::fusion::cpu
