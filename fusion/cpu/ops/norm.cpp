// Layer and group norm.
#include "fusion/cpu/kernels/norm.hpp"

#include <algorithm>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Norm {
  NormShape shape;
  Tensor x, weight, bias, y = {};
  Tensor mean = {}, inverse = {};  // of each row, for backward
  double eps = 0;
};

template <typename T>
T* at_or_null(const Run& run, const Tensor& t) {
  return t.defined() ? run.at<T>(t) : nullptr;
}

template <typename T>
void backward(Builder& b, const Norm& l) {
  const auto dy = b.gradient(l.y);
  if (!dy) return;
  const Builder::Part dx = b.contribute_if_wanted(l.x), dw = b.contribute_if_wanted(l.weight),
                      db = b.contribute_if_wanted(l.bias);
  const Tensor scratch = b.fresh({l.shape.scratch()});
  b.emit({*dy, l.x, l.weight, l.mean, l.inverse, dx.tensor, dw.tensor, db.tensor, scratch},
         [=, dy = *dy](const Run& run) {
           normalize_rows_backward(run.team, l.shape, run.at<T>(dy), run.at<T>(l.x), at_or_null<T>(run, l.weight),
                                   run.at<T>(l.mean), run.at<T>(l.inverse),
                                   {at_or_null<T>(run, dx.tensor), at_or_null<T>(run, dw.tensor),
                                    at_or_null<T>(run, db.tensor), dx.add, dw.add, db.add, run.at<T>(scratch)});
         });
}

// y has x's sizes, which are rows of shape.n.
void emit_norm(LoweringContext& site, Norm l) {
  Builder& b = site.b;
  l.y = b.fresh(l.x.sizes);
  l.mean = b.fresh({l.shape.rows});
  l.inverse = b.fresh({l.shape.rows});
  typed(b.dtype(), [&]<typename T>() {
    b.emit({l.x, l.weight, l.bias, l.y, l.mean, l.inverse}, [l](const Run& run) {
      normalize_rows(run.team, l.shape, run.at<T>(l.x), at_or_null<T>(run, l.weight), at_or_null<T>(run, l.bias), l.eps,
                     run.at<T>(l.y), run.at<T>(l.mean), run.at<T>(l.inverse));
    });
    b.differentiable({l.x, l.weight, l.bias}, {l.y}, [&b, l] { backward<T>(b, l); });
  });
  site.bind(l.y);
}

// Schema: input, normalized_shape, weight, bias, eps, cudnn_enable.
void layer_norm(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.floats(0);
  const Dims normalized = site.ints(1);
  const auto begin = x.sizes.end() - static_cast<std::ptrdiff_t>(std::min(normalized.size(), x.sizes.size()));
  if (normalized.empty() || x.numel() == 0 || Dims(begin, x.sizes.end()) != normalized) {
    site.fail("its input is empty, or does not end in the sizes to be normalised");
  }
  Norm l{{},
         b.contiguous(x),
         b.contiguous_or_none(site.floats_or_none(2, normalized)),
         b.contiguous_or_none(site.floats_or_none(3, normalized))};
  l.eps = site.number(4);
  l.shape.n = product(normalized);
  l.shape.rows = l.x.numel() / l.shape.n;
  emit_norm(site, l);
}

// [C] as [C, positions]: each channel's number stands beside every element that it belongs to, and the gradients of
// those come together again on the way back.
Tensor per_position(Builder& b, Tensor t, std::int64_t positions) {
  if (!t.defined()) return t;
  const std::int64_t channels = t.size(0);
  t.sizes.push_back(1);
  t.strides.push_back(0);
  return b.contiguous(t.expanded({channels, positions}));
}

// Schema: input, num_groups, weight, bias, eps, cudnn_enabled.
void group_norm(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.floats(0);
  if (x.dim() < 2 || x.numel() == 0) site.fail("its input has no channels");
  const std::int64_t groups = site.integer(1);
  if (groups < 1 || x.size(1) % groups != 0) site.fail("its channels cannot be divided into its groups");
  Norm l{{}, b.contiguous(x), {}, {}};
  const std::int64_t positions = l.x.numel() / (l.x.size(0) * l.x.size(1));
  l.weight = per_position(b, site.floats_or_none(2, {x.size(1)}), positions);
  l.bias = per_position(b, site.floats_or_none(3, {x.size(1)}), positions);
  l.eps = site.number(4);
  l.shape.groups = groups;
  l.shape.rows = l.x.size(0) * l.shape.groups;
  l.shape.n = l.x.numel() / l.shape.rows;
  emit_norm(site, l);
}

}  // namespace

std::vector<NamedCompiler> norm_ops() { return {{"aten::layer_norm", layer_norm}, {"aten::group_norm", group_norm}}; }

}  // namespace hfta::fusion::cpu
