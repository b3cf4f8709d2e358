// Losses, as torch.nn.functional defines them. Their targets are data: no gradient goes there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/graph/reduction.hpp"

namespace hfta::fusion::cpu {
namespace {

using SlotNumber = std::function<double(const Run&)>;

// ---- Element by element ----

// value(): the loss of one element y with its target t; slope(): its derivative by y. `p`: the loss's number.
template <typename T>
struct SquaredError {
  static T value(T y, T t, T /*p*/) { return (y - t) * (y - t); }
  static T slope(T y, T t, T /*p*/) { return 2 * (y - t); }
};

template <typename T>
struct AbsoluteError {
  static T value(T y, T t, T /*p*/) { return std::abs(y - t); }
  static T slope(T y, T t, T /*p*/) { return y > t ? T{1} : y < t ? T{-1} : y - t; }  // NaN stays
};

// p: delta.
template <typename T>
struct HuberError {
  static T value(T y, T t, T p) {
    const T d = std::abs(y - t);
    return d <= p ? d * d / 2 : p * (d - p / 2);
  }
  static T slope(T y, T t, T p) {
    const T d = y - t;
    return d < -p ? -p : d > p ? p : d;
  }
};

// p: beta; 0: the absolute error.
template <typename T>
struct SmoothAbsoluteError {
  static T value(T y, T t, T p) {
    const T d = std::abs(y - t);
    return d < p ? d * d / (2 * p) : d - p / 2;
  }
  static T slope(T y, T t, T p) {
    const T d = y - t;
    return std::abs(d) < p ? d / p : AbsoluteError<T>::slope(y, t, p);
  }
};

// max(y, 0) - y t + log(1 + exp(-|y|)).
template <typename T>
struct LogisticError {
  static T value(T y, T t, T /*p*/) { return std::max(y, T{0}) - y * t + std::log1p(std::exp(-std::abs(y))); }
  static T slope(T y, T t, T /*p*/) { return 1 / (1 + std::exp(-y)) - t; }
};

// Logistic error with a weight p of the positive targets.
template <typename T>
struct WeightedLogisticError {
  static T value(T y, T t, T p) {
    return (1 - t) * y + (1 + (p - 1) * t) * (std::log1p(std::exp(-std::abs(y))) + std::max(-y, T{0}));
  }
  static T slope(T y, T t, T p) { return 1 - t - (1 + (p - 1) * t) / (1 + std::exp(y)); }
};

// PyTorch bounds the logarithms by -100, and the derivative's denominator by 1e-12.
template <typename T>
struct BinaryCrossEntropy {
  static T value(T y, T t, T /*p*/) {
    return (t - 1) * std::max(std::log1p(-y), T{-100}) - t * std::max(std::log(y), T{-100});
  }
  static T slope(T y, T t, T /*p*/) { return (y - t) / std::max((1 - y) * y, static_cast<T>(1e-12)); }
};

template <typename T>
struct SoftMargin {
  static T value(T y, T t, T /*p*/) { return std::log1p(std::exp(-t * y)); }
  static T slope(T y, T t, T /*p*/) { return -t / (1 + std::exp(t * y)); }
};

// y: a logarithm of probabilities.
template <typename T>
struct Divergence {
  static T value(T y, T t, T /*p*/) {
    return t > 0 ? t * (std::log(t) - y) : t == 0 ? -t * y : std::numeric_limits<T>::quiet_NaN();
  }
  static T slope(T /*y*/, T t, T /*p*/) { return -t; }
};

// The target is a logarithm, too.
template <typename T>
struct LogDivergence {
  static T value(T y, T t, T /*p*/) { return std::exp(t) * (t - y); }
  static T slope(T /*y*/, T t, T /*p*/) { return -std::exp(t); }
};

struct Elementwise {
  Tensor y, t, loss;
  SlotNumber p;  // one number for all elements,
  Tensor each;   // or, where this is defined, one for each: of y's sizes
  Reduction reduction;
  [[nodiscard]] double scale() const {
    return reduction == Reduction::kMean ? 1.0 / static_cast<double>(y.numel()) : 1.0;
  }
};

template <template <typename> class Rule, typename T>
void emit_elementwise(Builder& b, const Elementwise& e) {
  const std::int64_t n = e.y.numel();
  b.emit({e.y, e.t, e.each, e.loss}, [=](const Run& run) {
    const T* const y = run.at<T>(e.y);
    const T* const t = run.at<T>(e.t);
    T* const loss = run.at<T>(e.loss);
    const T* const own = e.each.defined() ? run.at<T>(e.each) : nullptr;
    const auto p = static_cast<T>(e.p(run));
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T each = Rule<T>::value(y[i], t[i], own != nullptr ? own[i] : p);
      if (e.reduction == Reduction::kNone) loss[i] = each;
      total += static_cast<double>(each);
    }
    if (e.reduction != Reduction::kNone) *loss = static_cast<T>(total * e.scale());
  });
  b.differentiable({e.y}, {e.loss}, [=, &b] {
    const auto dl = b.gradient(e.loss);
    if (!dl) return;
    const Builder::Part dy = b.contribute(e.y);
    b.emit({e.y, e.t, e.each, *dl, dy.tensor}, [=, dl = *dl](const Run& run) {
      const T* const y = run.at<T>(e.y);
      const T* const t = run.at<T>(e.t);
      const T* const given = run.at<T>(dl);
      T* const out = run.at<T>(dy.tensor);
      const T* const own = e.each.defined() ? run.at<T>(e.each) : nullptr;
      const auto p = static_cast<T>(e.p(run)), scale = static_cast<T>(e.scale());
      for (std::int64_t i = 0; i < n; ++i) {
        const T slope = Rule<T>::slope(y[i], t[i], own != nullptr ? own[i] : p) *
                        (e.reduction == Reduction::kNone ? given[i] : *given * scale);
        out[i] = dy.add ? out[i] + slope : slope;
      }
    });
  });
}

template <template <typename> class Rule>
void elementwise(
    LoweringContext& site, Reduction reduction, SlotNumber p = [](const Run&) { return 0.0; },
    const Tensor& each = {}) {
  Builder& b = site.b;
  if (b.wants_gradient(site.floats(1))) site.fail("its target is trained");
  const Elementwise e{b.contiguous(site.floats(0)),
                      b.contiguous(site.floats(1)),
                      reduction == Reduction::kNone ? b.fresh(site.tensor(0).sizes) : b.fresh({}),
                      std::move(p),
                      each,
                      reduction};
  if (e.y.sizes != e.t.sizes) site.fail("its target has other sizes than its input");
  typed(b.dtype(), [&]<typename T>() { emit_elementwise<Rule, T>(b, e); });
  site.bind(e.loss);
}

// Schema: self, target, reduction.
template <template <typename> class Rule>
void plain(LoweringContext& site) {
  elementwise<Rule>(site, Reduction{site.integer(2)});
}

// Schema: self, target, reduction, number.
template <template <typename> class Rule>
void with_number(LoweringContext& site) {
  elementwise<Rule>(site, Reduction{site.integer(2)}, site.slot_number(3));
}

// Schema: self, target, weight, reduction.
void binary_cross_entropy(LoweringContext& site) {
  if (!site.is_none(2)) site.fail("with weights");
  elementwise<BinaryCrossEntropy>(site, Reduction{site.integer(3)});
}

// Schema: self, target, weight, pos_weight, reduction.
void binary_cross_entropy_with_logits(LoweringContext& site) {
  if (!site.is_none(2)) site.fail("with weights");
  if (site.is_none(3)) return elementwise<LogisticError>(site, Reduction{site.integer(4)});
  Builder& b = site.b;
  if (b.wants_gradient(site.floats(3))) site.fail("its weight is trained");
  const Tensor weight = b.contiguous(site.floats(3).expanded(site.tensor(0).sizes));
  elementwise<WeightedLogisticError>(
      site, Reduction{site.integer(4)}, [](const Run&) { return 1.0; }, weight);
}

// Schema: self, target, reduction, log_target.
void kl_div(LoweringContext& site) {
  site.flag(3) ? elementwise<LogDivergence>(site, Reduction{site.integer(2)})
               : elementwise<Divergence>(site, Reduction{site.integer(2)});
}

// ---- Classes ----

// Logits with classes as their last dimension; rows are samples and positions.
Tensor class_rows(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor given = site.floats(0);
  if (given.dim() < 1) site.fail("its input has no classes");
  Dims order(given.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t classes = given.dim() == 1 ? 0 : 1;
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(classes),
              order.begin() + static_cast<std::ptrdiff_t>(classes) + 1, order.end());
  return b.contiguous(given.permuted(order));
}

struct Classes {
  Tensor logits, target, weight, scratch, losses, slope, loss;  // losses: of rows, in double
  SlotNumber smoothing;
  std::int64_t ignored;
  Reduction reduction;
};

template <typename T>
void emit_cross_entropy(Builder& b, const Classes& c) {
  const std::int64_t classes = c.logits.sizes.back();
  CrossEntropy<T> task;
  task.rows = c.logits.numel() / classes;
  task.classes = classes;
  task.ignored = c.ignored;
  task.mean = c.reduction == Reduction::kMean;
  b.emit({c.logits, c.target, c.weight, c.scratch, c.losses, c.slope, c.loss}, [=](const Run& run) {
    CrossEntropy<T> now = task;
    now.smoothing = c.smoothing(run);
    now.weight = c.weight.defined() ? run.at<T>(c.weight) : nullptr;
    T* const loss = run.at<T>(c.loss);
    const double total = cross_entropy(run.team, now, run.at<T>(c.logits), run.at<std::int64_t>(c.target),
                                       c.reduction == Reduction::kNone ? loss : nullptr,
                                       {run.at<double>(c.losses), run.at<T>(c.scratch), c.scratch.strides[0]},
                                       c.slope.defined() ? run.at<T>(c.slope) : nullptr);
    if (c.reduction != Reduction::kNone) *loss = static_cast<T>(total);
  });
  // The slopes are already there; they are only scaled, and become the gradient.
  b.differentiable({c.logits}, {c.loss}, [=, &b] {
    const auto dl = b.gradient(c.loss);
    if (!dl) return;
    const std::int64_t per_row = c.reduction == Reduction::kNone ? 1 : 0;
    b.emit({*dl, c.slope}, [=, dl = *dl, rows = task.rows](const Run& run) {
      const T* const given = run.at<T>(dl);
      T* const slope = run.at<T>(c.slope);
      share(run.team, stretches_of(rows, classes), [&](std::int64_t first, std::int64_t count, int) {
        for (std::int64_t r = first; r < first + count; ++r) {
          const T factor = given[r * per_row];
          if (factor == T{1}) continue;
          for (std::int64_t k = 0; k < classes; ++k) slope[r * classes + k] *= factor;
        }
      });
    });
    b.contribute(c.logits, c.slope);
  });
}

// Schema: self, target, weight, reduction, ignore_index, label_smoothing.
void cross_entropy_loss(LoweringContext& site) {
  Builder& b = site.b;
  if (site.tensor(1).dtype != DType::kInt64) site.fail("its targets are not classes");
  Classes c;
  c.logits = class_rows(site);
  Dims positions = c.logits.sizes;
  const std::int64_t classes = positions.back();
  positions.pop_back();
  if (site.tensor(1).sizes != positions) site.fail("its targets have other sizes than its input without classes");
  c.target = b.contiguous(site.tensor(1));
  c.weight = b.contiguous_or_none(site.floats_or_none(2, {classes}));
  c.reduction = Reduction{site.integer(3)};
  c.ignored = site.integer(4);
  c.smoothing = site.slot_number(5);
  c.scratch = b.scratch(classes);
  c.losses = b.fresh({c.logits.numel() / classes}, DType::kFloat64);
  if (b.training() && b.wants_gradient(c.logits)) c.slope = b.fresh(c.logits.sizes);
  c.loss = c.reduction == Reduction::kNone ? b.fresh(positions) : b.fresh({});
  typed(b.dtype(), [&]<typename T>() { emit_cross_entropy<T>(b, c); });
  site.bind(c.loss);
}

}  // namespace

std::vector<NamedCompiler> loss_ops() {
  return {{"aten::mse_loss", plain<SquaredError>},
          {"aten::l1_loss", plain<AbsoluteError>},
          {"aten::soft_margin_loss", plain<SoftMargin>},
          {"aten::huber_loss", with_number<HuberError>},
          {"aten::smooth_l1_loss", with_number<SmoothAbsoluteError>},
          {"aten::kl_div", kl_div},
          {"aten::binary_cross_entropy", binary_cross_entropy},
          {"aten::binary_cross_entropy_with_logits", binary_cross_entropy_with_logits},
          {"aten::cross_entropy_loss", cross_entropy_loss}};
}

}  // namespace hfta::fusion::cpu
