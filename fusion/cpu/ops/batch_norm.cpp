// x [N, C, ...] normalised over all but C, which is last in memory; with a residual added and a relu behind it.
#include "fusion/cpu/kernels/batch_norm.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

struct BatchNorm {
  Tensor x, weight, bias, running_mean, running_var, residual, y;
  Tensor signs;        // signs of y, where its relu reads neither x nor y
  bool batch = false;  // normalise by the batch's statistics
  bool relu = false;
  std::function<double(const Run&)> momentum, eps;
  std::int64_t rows = 0, channels = 0;
  Tensor mean, deviation, scale, shift;  // [C]; deviation: its inverse
  Stretches sets;                        // sets of rows
  Tensor sums, products;                 // [sets, C], double; in the end the first row has those of all rows
};

// Rows that are summed by themselves: a function of the shape alone, so that any team comes to the same bits.
Stretches sets_of_rows(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kMost = 8, kUnit = 64;
  Stretches sets = stretches_of(rows, channels, kUnit);
  sets.length = std::max(sets.length, (rows + kMost * kUnit - 1) / (kMost * kUnit) * kUnit);
  return sets;
}

// Channels [first, first + count).
struct Channels {
  std::int64_t first = 0, count = 0;
};

// Rows [first, first + count), of one set or of all.
struct Rows {
  std::int64_t first = 0, count = 0, set = 0;
};

template <typename Work>
void share_rows(const Run& run, const BatchNorm& n, const Work& work) {
  share(run.team, n.sets, [&](std::int64_t first, std::int64_t count, int) {
    work(Rows{first, count, first / n.sets.length});
  });
}

// Whether a team shares rows: a thread mostly finds those in its cache that it has written there. Elsewhere some
// channels are taken at a time: what was summed is in the cache when it is used.
bool goes_by_rows(const Run& run, const BatchNorm& n) { return run.team != nullptr && n.sets.count() > 1; }

// Sums over the rows of each set; then join(channels), for all at once where it goes by rows.
template <typename Sum, typename Join>
void sum_rows(const Run& run, const BatchNorm& n, const Sum& sum, const Join& join) {
  constexpr std::int64_t kNarrow = 32, kMany = 256, kPasses = 4;
  if (goes_by_rows(run, n)) {
    const Channels all{0, n.channels};
    share_rows(run, n, [&](const Rows& rows) { sum(rows, all); });
    return join(all);
  }
  share(run.team, stretches_of(n.channels, kPasses * n.rows, n.channels < kMany ? kNarrow : 2 * kNarrow),
        [&](std::int64_t first, std::int64_t count, int) {
          const Channels some{first, count};
          for (std::int64_t set = 0; set < n.sets.count(); ++set) {
            sum(Rows{n.sets.begin(set), n.sets.size(set), set}, some);
          }
          join(some);
        });
}

template <typename T>
Normalisation<T> normalisation(const BatchNorm& n, const Run& run, const Channels& of) {
  return {run.at<T>(n.mean) + of.first, run.at<T>(n.scale) + of.first, run.at<T>(n.shift) + of.first, n.relu};
}

struct Numbers {
  double momentum = 0, eps = 0;
};

// Running statistics after this batch.
template <typename T>
void follow(const BatchNorm& n, const Run& run, const Channels& of, double momentum) {
  const double unbiased = static_cast<double>(n.rows) / static_cast<double>(n.rows - 1);
  const double* const mean = run.at<double>(n.sums);
  const double* const variance = run.at<double>(n.products);
  T* const running_mean = run.at<T>(n.running_mean);
  T* const running_var = run.at<T>(n.running_var);
  for (std::int64_t c = of.first; c < of.first + of.count; ++c) {
    running_mean[c] = static_cast<T>((1 - momentum) * static_cast<double>(running_mean[c]) + momentum * mean[c]);
    running_var[c] =
        static_cast<T>((1 - momentum) * static_cast<double>(running_var[c]) + momentum * variance[c] * unbiased);
  }
}

template <typename T>
void sum_statistics(const BatchNorm& n, const Run& run, const Rows& rows, const Channels& of) {
  const std::int64_t to = rows.set * n.channels + of.first;
  column_statistics(run.at<T>(n.x) + rows.first * n.channels + of.first, n.channels, rows.count, of.count,
                    run.at<double>(n.sums) + to, run.at<double>(n.products) + to);
}

// Mean and variance in the place of the first set's sums.
void join_sets_statistics(const BatchNorm& n, const Run& run, const Channels& of) {
  double* const means = run.at<double>(n.sums);
  double* const squares = run.at<double>(n.products);
  for (std::int64_t set = 1; set < n.sets.count(); ++set) {
    const auto before = static_cast<double>(n.sets.begin(set)), own = static_cast<double>(n.sets.size(set));
    for (std::int64_t c = of.first; c < of.first + of.count; ++c) {
      const std::int64_t other = set * n.channels + c;
      join_statistics(before, means[c], squares[c], own, means[other], squares[other]);
    }
  }
  for (std::int64_t c = of.first; c < of.first + of.count; ++c) squares[c] /= static_cast<double>(n.rows);
}

// Mean, scale and shift of each channel, and the running statistics.
template <typename T>
void prepare(const BatchNorm& n, const Run& run, const Channels& of, const Numbers& numbers) {
  const double* const mean = run.at<double>(n.sums);
  const double* const variance = run.at<double>(n.products);
  if (n.batch) join_sets_statistics(n, run, of);
  if (n.batch && n.running_mean.defined()) follow<T>(n, run, of, numbers.momentum);
  for (std::int64_t c = of.first; c < of.first + of.count; ++c) {
    const double var = n.batch ? variance[c] : static_cast<double>(run.at<T>(n.running_var)[c]);
    const T deviation = static_cast<T>(1 / std::sqrt(var + numbers.eps));
    run.at<T>(n.mean)[c] = n.batch ? static_cast<T>(mean[c]) : run.at<T>(n.running_mean)[c];
    run.at<T>(n.deviation)[c] = deviation;
    run.at<T>(n.scale)[c] = n.weight.defined() ? run.at<T>(n.weight)[c] * deviation : deviation;
    run.at<T>(n.shift)[c] = n.bias.defined() ? run.at<T>(n.bias)[c] : T{0};
  }
}

template <typename T>
void normalise_rows(const BatchNorm& n, const Run& run, const Rows& rows, const Channels& of) {
  const std::int64_t at = rows.first * n.channels + of.first;
  normalise(normalisation<T>(n, run, of), run.at<T>(n.x) + at,
            n.residual.defined() ? run.at<T>(n.residual) + at : nullptr, n.channels, rows.count, of.count,
            run.at<T>(n.y) + at);
}

template <typename T>
void forward(Builder& b, const BatchNorm& n) {
  const auto normalise_all = [n](const Run& run) {  // uses the statistics that are there
    share_rows(run, n, [&](const Rows& rows) { normalise_rows<T>(n, run, rows, {0, n.channels}); });
  };
  b.emit({n.x, n.weight, n.bias, n.running_mean, n.running_var, n.residual, n.y, n.mean, n.deviation, n.scale, n.shift,
          n.sums, n.products},
         [=](const Run& run) {
           const Numbers numbers{n.momentum(run), n.eps(run)};
           const auto sum = [&](const Rows& rows, const Channels& of) {
             if (n.batch) sum_statistics<T>(n, run, rows, of);
           };
           const bool by_rows = goes_by_rows(run, n);
           sum_rows(run, n, sum, [&](const Channels& of) {
             prepare<T>(n, run, of, numbers);
             if (!by_rows) normalise_rows<T>(n, run, {0, n.rows}, of);
           });
           if (by_rows) normalise_all(run);
         });
  b.recomputable(n.y, {n.x, n.residual, n.y, n.mean, n.scale, n.shift}, normalise_all, RecomputeCost::kPass);
}

// Makes of the sums over rows: gradients of weight and bias, and what normalise_backward() takes off.
template <typename T>
void reduce(const BatchNorm& n, const Run& run, const Channels& of, const Builder::Part& dweight,
            const Builder::Part& dbias, T* less, T* slope) {
  double* const sums = run.at<double>(n.sums);
  double* const products = run.at<double>(n.products);
  for (std::int64_t set = 1; set < n.sets.count(); ++set) {
    for (std::int64_t c = of.first; c < of.first + of.count; ++c) {
      sums[c] += sums[set * n.channels + c];
      products[c] += products[set * n.channels + c];
    }
  }
  const double share = n.batch ? 1 / static_cast<double>(n.rows) : 0;
  for (std::int64_t c = of.first; c < of.first + of.count; ++c) {
    const auto deviation = static_cast<double>(run.at<T>(n.deviation)[c]);
    if (dweight.tensor.defined()) {
      T& to = run.at<T>(dweight.tensor)[c];
      to = (dweight.add ? to : T{0}) + static_cast<T>(products[c] * deviation);
    }
    if (dbias.tensor.defined()) {
      T& to = run.at<T>(dbias.tensor)[c];
      to = (dbias.add ? to : T{0}) + static_cast<T>(sums[c]);
    }
    less[c] = static_cast<T>(sums[c] * share);
    slope[c] = static_cast<T>(products[c] * share * deviation * deviation);
  }
}

template <typename T>
void backward(Builder& b, const BatchNorm& norm) {
  const auto given = b.gradient(norm.y);
  if (!given) return;
  const Tensor& dy = *given;
  BatchNorm n = norm;
  if (n.signs.defined()) {
    emit_mask(b, dy, n.signs);
    n.relu = false;
  }
  const Tensor less = b.fresh({n.channels}), slope = b.fresh({n.channels});
  const bool wants_x = b.wants_gradient(n.x), residual = b.wants_gradient(n.residual);
  const Builder::Part dweight = b.contribute_if_wanted(n.weight), dbias = b.contribute_if_wanted(n.bias);
  const bool by_output = n.relu && n.residual.defined();
  b.emit({n.x, by_output ? n.y : Tensor{}, dy, n.mean, n.deviation, n.scale, n.shift, n.sums, n.products, less, slope,
          dweight.tensor, dbias.tensor},
         [=](const Run& run) {
           const auto sum = [&](const Rows& rows, const Channels& of) {
             const std::int64_t at = rows.first * n.channels + of.first, to = rows.set * n.channels + of.first;
             column_gradients(normalisation<T>(n, run, of), run.at<T>(n.x) + at,
                              by_output ? run.at<T>(n.y) + at : nullptr, n.channels, rows.count, of.count,
                              run.at<T>(dy) + at, run.at<double>(n.sums) + to, run.at<double>(n.products) + to);
           };
           const auto join = [&](const Channels& of) {
             reduce<T>(n, run, of, dweight, dbias, run.at<T>(less), run.at<T>(slope));
           };
           sum_rows(run, n, sum, join);
         });
  if (wants_x) {
    // Nobody reads dy any more, but for the residual: the gradient of x takes its place.
    const bool in_place = !residual && !b.gradient(n.x);
    const Builder::Part dx = in_place ? Builder::Part{dy, false} : b.contribute(n.x);
    b.emit({n.x, dy, dx.tensor, n.mean, n.scale, n.shift, less, slope}, [=](const Run& run) {
      Normalisation<T> by = normalisation<T>(n, run, {0, n.channels});
      by.relu = n.relu && !by_output;
      share_rows(run, n, [&](const Rows& rows) {
        const std::int64_t at = rows.first * n.channels;
        normalise_backward(by, run.at<T>(less), run.at<T>(slope), run.at<T>(n.x) + at, run.at<T>(dy) + at, n.channels,
                           rows.count, n.channels, run.at<T>(dx.tensor) + at, dx.add);
      });
    });
    if (in_place) b.contribute(n.x, dy);
  }
  if (residual) b.contribute(n.residual, dy);
}

// C last in memory, the others in order.
Dims channels_last(std::int64_t dims) {
  Dims order = {0};
  for (std::int64_t d = 2; d < dims; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}

// If all that happens to `output` is that a tensor is added which is there already, that node; the tensor is `other`.
std::optional<std::size_t> fused_addition(LoweringContext& site, const Dims& sizes, ValueId& other) {
  Builder& b = site.b;
  const auto reader = b.only_reader(site.output());
  if (!reader) return std::nullopt;
  const Node& node = b.graph().nodes[*reader];
  const bool adds = node.op == "aten::add.Tensor" || (node.op == "aten::add_.Tensor" && !node.no_gradient);
  if (!adds) return std::nullopt;
  const LoweringContext addition(b, *reader);
  if (node.args.size() < 3 || addition.hyper(2) || !addition.is_number(2) || addition.number(2) != 1)
    return std::nullopt;
  const auto* first = argument_if<ValueId>(node, 0);
  const auto* second = argument_if<ValueId>(node, 1);
  if (first == nullptr || second == nullptr) return std::nullopt;
  if (overwrites(node.op) && *first != site.output()) return std::nullopt;  // what it writes others may read
  other = *first == site.output() ? *second : *first;
  if (other == site.output() || !b.bound(other) || b.value(other).sizes != sizes || b.value(other).dtype != b.dtype()) {
    return std::nullopt;
  }
  return reader;
}

// Schema: input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled.
void batch_norm(LoweringContext& site) {
  Builder& b = site.b;
  BatchNorm n;
  const Tensor x = site.floats(0);
  if (x.dim() < 2 || x.numel() == 0) site.fail("its input has no channels");
  const Dims order = channels_last(x.dim());
  n.x = b.in_order(x, order);
  const auto vector = [&](std::size_t i) { return b.contiguous_or_none(site.floats_or_none(i, {x.size(1)})); };
  n.weight = vector(1);
  n.bias = vector(2);
  n.running_mean = vector(3);
  n.running_var = vector(4);
  n.batch = site.flag(5);
  n.momentum = site.slot_number(6);
  n.eps = site.slot_number(7);
  n.channels = x.size(1);
  n.rows = x.numel() / n.channels;
  if (n.batch && n.rows == 1) site.fail("one value for each channel has no variance");
  if (n.running_mean.defined() != n.running_var.defined()) site.fail("it has one of the running statistics alone");
  if (!n.batch && !n.running_mean.defined()) site.fail("it has no running statistics to normalise by");
  for (Tensor* t : {&n.mean, &n.deviation, &n.scale, &n.shift}) *t = b.fresh({n.channels});
  n.sets = sets_of_rows(n.rows, n.channels);
  for (Tensor* t : {&n.sums, &n.products}) *t = b.fresh({n.sets.count(), n.channels}, DType::kFloat64);
  const Tensor ordered = n.x.permuted(order);
  n.y = b.fresh(ordered.sizes).permuted(inverse(order));
  ValueId output = site.output(), other = kNoValue;
  if (const auto addition = fused_addition(site, x.sizes, other)) {
    n.residual = b.in_order(b.value(other), order);
    LoweringContext behind(b, *addition);
    b.fuse(*addition);
    output = behind.output();
    n.relu = fused_relu(behind);
  } else {
    n.relu = fused_relu(site);
  }
  typed(b.dtype(), [&]<typename T>() { forward<T>(b, n); });
  if (n.relu) n.signs = kept_signs(b, n.y);
  b.differentiable({n.x, n.weight, n.bias, n.residual}, {n.y},
                   [&b, n] { typed(b.dtype(), [&]<typename T>() { backward<T>(b, n); }); });
  b.bind(output, n.y);
}

// Schema: input, other, alpha. Counters of batches, without gradients, which are written to where they are.
void count(LoweringContext& site) {
  Builder& b = site.b;
  const Tensor x = site.tensor(0);
  const auto& weights = b.graph().weights;
  const bool counter =
      x.dtype == DType::kInt64 && !b.wants_gradient(x) && site.is_number(1) &&
      std::any_of(weights.begin(), weights.end(), [&](const Weight& w) { return b.value(w.value).buffer == x.buffer; });
  if (!counter) site.fail("it runs without gradients");
  const std::int64_t step = site.integer(1) * site.integer(2), n = x.numel();
  if (!x.contiguous()) site.fail("the value that it changes has gaps");
  b.emit({x}, [=](const Run& run) {
    std::int64_t* const at = run.at<std::int64_t>(x);
    for (std::int64_t i = 0; i < n; ++i) at[i] += step;
  });
  site.bind(x);
}

}  // namespace

std::vector<NamedCompiler> batch_norm_ops() { return {{"aten::batch_norm", batch_norm}, {"aten::add_.Tensor", count}}; }

}  // namespace hfta::fusion::cpu
