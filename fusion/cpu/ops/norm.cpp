// Layer, RMS and group norm.
#include "fusion/cpu/kernels/norm.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <variant>

#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Norm {
  NormShape shape;
  Tensor x, weight, bias, y = {};
  Tensor mean = {}, inverse = {};  // statistics of each row, for backward
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
void emit_norm(Builder& b, ValueId output, Norm l) {
  l.y = b.fresh(l.x.sizes);
  l.mean = b.fresh({l.shape.rows});
  l.inverse = b.fresh({l.shape.rows});
  typed(b.dtype(), [&]<typename T>() {
    const auto kernel = [l](const Run& run) {
      normalize_rows(run.team, l.shape, run.at<T>(l.x), at_or_null<T>(run, l.weight), at_or_null<T>(run, l.bias), l.eps,
                     run.at<T>(l.y), run.at<T>(l.mean), run.at<T>(l.inverse));
    };
    b.emit({l.x, l.weight, l.bias, l.y, l.mean, l.inverse}, kernel);
    b.recomputable(l.y, {l.x, l.weight, l.bias, l.y, l.mean, l.inverse}, kernel, RecomputeCost::kPass);
    b.differentiable({l.x, l.weight, l.bias}, {l.y}, [&b, l] { backward<T>(b, l); });
  });
  b.bind(output, l.y);
}

// Schema: input, normalized_shape. The second argument, which the first one's sizes end in.
Dims normalized_sizes(LoweringContext& site) {
  const Tensor x = site.floats(0);
  Dims normalized = site.ints(1);
  const auto begin = x.sizes.end() - static_cast<std::ptrdiff_t>(std::min(normalized.size(), x.sizes.size()));
  if (normalized.empty() || x.numel() == 0 || Dims(begin, x.sizes.end()) != normalized) {
    site.fail("its input is empty, or does not end in the sizes to be normalised");
  }
  return normalized;
}

// Schema: input, normalized_shape, weight, bias, eps, cudnn_enable.
void layer_norm(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.floats(0);
  const Dims normalized = normalized_sizes(site);
  Norm l{{},
         b.contiguous(x),
         b.contiguous_or_none(site.floats_or_none(2, normalized)),
         b.contiguous_or_none(site.floats_or_none(3, normalized))};
  l.eps = site.number(4);
  l.shape.n = product(normalized);
  l.shape.rows = l.x.numel() / l.shape.n;
  emit_norm(b, site.output(), l);
}

// Schema: input, normalized_shape, weight, eps.
void rms_norm(LoweringContext& site) {
  Builder& b = site.b;
  const Dims normalized = normalized_sizes(site);
  Norm l{{}, b.contiguous(site.floats(0)), b.contiguous_or_none(site.floats_or_none(2, normalized)), {}};
  const double least =
      b.dtype() == DType::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  l.eps = site.is_none(3) ? least : site.number(3);
  l.shape.n = product(normalized);
  l.shape.rows = l.x.numel() / l.shape.n;
  l.shape.centered = false;
  emit_norm(b, site.output(), l);
}

// ---- An RMS norm written as the calls that it is made of ----

bool same_place(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
}

// Follows a value from reader to only reader, and remembers which nodes it came by.
class Chain {
 public:
  Chain(Builder& b, ValueId value) : b_(b), value_(value) {}

  [[nodiscard]] ValueId value() const { return value_; }
  [[nodiscard]] const std::vector<std::size_t>& nodes() const { return nodes_; }

  /// The next node if it is one of these ops, behind casts that change nothing; null, and then the chain has not moved.
  const Node* next(const std::vector<std::string_view>& ops) {
    ValueId value = value_;
    std::vector<std::size_t> passed;
    while (const auto reader = b_.only_reader(value)) {
      const Node& node = b_.graph().nodes[*reader];
      passed.push_back(*reader);
      if (std::find(ops.begin(), ops.end(), node.op) != ops.end()) {
        nodes_.insert(nodes_.end(), passed.begin(), passed.end());
        value_ = first_output(node);
        return &node;
      }
      const ValueId same = node.op.starts_with("aten::to.") ? first_output(node) : kNoValue;
      if (same == kNoValue || dtype_of(same) != dtype_of(value)) return nullptr;
      value = same;
    }
    return nullptr;
  }

  /// Goes on to a product of two tensors. Gives the factor that is not the chain's own; undefined, and then the chain
  /// has not moved, if that is not there yet or does not fit.
  template <typename Fits>
  Tensor next_product(const Fits& fits) {
    const Chain before = *this;
    const Node* node = next({"aten::mul.Tensor"});
    if (node != nullptr) {
      for (const std::size_t i : {0, 1}) {
        const auto* id = argument_if<ValueId>(*node, i);
        if (id == nullptr || !b_.bound(*id) || b_.value(*id).dtype != b_.dtype()) continue;
        if (fits(b_.value(*id))) return b_.value(*id);
      }
    }
    value_ = before.value_;
    nodes_ = before.nodes_;
    return {};
  }

 private:
  [[nodiscard]] DType dtype_of(ValueId id) const { return b_.graph().values[static_cast<std::size_t>(id)].dtype; }

  Builder& b_;
  ValueId value_;
  std::vector<std::size_t> nodes_;
};

// Schema of mean.dim: input, dim, keepdim, dtype.
bool is_mean_of_rows(const LoweringContext& mean, std::int64_t dims) {
  if (mean.is_none(1) || !mean.flag(2) || !mean.is_none(3)) return false;
  const Dims over = mean.ints(1);
  return over.size() == 1 && (over.front() == -1 || over.front() == dims - 1);
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
  emit_norm(b, site.output(), l);
}

}  // namespace

bool fused_rms_norm(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.floats(0);
  if (site.node().no_gradient || x.dim() < 1 || x.numel() == 0) return false;
  Chain chain(b, site.output());
  if (chain.next({"aten::mean.dim"}) == nullptr) return false;
  if (!is_mean_of_rows(LoweringContext(b, chain.nodes().back()), x.dim())) return false;
  if (chain.next({"aten::add.Tensor", "aten::add.Scalar"}) == nullptr) return false;
  const LoweringContext addition(b, chain.nodes().back());
  if (!addition.is_number(1) || addition.hyper(2) || addition.number(2) != 1) return false;
  if (chain.next({"aten::rsqrt"}) == nullptr) return false;
  if (!chain.next_product([&](const Tensor& other) { return same_place(other, x); }).defined()) return false;
  Norm l{{}, b.contiguous(x), {}, {}};
  l.shape.n = x.size(-1);
  const Tensor weight = chain.next_product([&](const Tensor& other) { return other.sizes == Dims{l.shape.n}; });
  l.weight = b.contiguous_or_none(weight);
  l.eps = addition.number(1);
  l.shape.rows = x.numel() / l.shape.n;
  l.shape.centered = false;
  emit_norm(b, chain.value(), l);
  for (const std::size_t node : chain.nodes()) b.fuse(node);
  return true;
}

std::vector<NamedCompiler> norm_ops() {
  return {{"aten::layer_norm", layer_norm}, {"aten::rms_norm", rms_norm}, {"aten::group_norm", group_norm}};
}

}  // namespace hfta::fusion::cpu
