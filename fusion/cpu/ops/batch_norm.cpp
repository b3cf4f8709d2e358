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
  bool mixes = false;  // each channel of x is a sum of all of what the layer before it reads
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

// Finds the statistics; `then` takes channels whose statistics are there, some at a time or all at once.
template <typename T, typename Then>
void find_statistics(const BatchNorm& n, const Run& run, const Then& then) {
  const Numbers numbers{n.momentum(run), n.eps(run)};
  const auto sum = [&](const Rows& rows, const Channels& of) {
    if (n.batch) sum_statistics<T>(n, run, rows, of);
  };
  sum_rows(run, n, sum, [&](const Channels& of) {
    prepare<T>(n, run, of, numbers);
    then(of);
  });
}

// coherence_of() some rows and channels of x, spread evenly.
double some_coherence(const BatchNorm& n, const Run& run) {
  constexpr std::int64_t kRows = 512, kChannels = 64;
  const std::int64_t rows = std::min(n.rows, kRows), channels = std::min(n.channels, kChannels);
  const float* const x = run.at<float>(n.x);
  std::vector<float> some(static_cast<std::size_t>(rows * channels));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < channels; ++k) {
      const std::int64_t c = k * n.channels / channels, row = r * n.rows / rows;
      some[static_cast<std::size_t>(r * channels + k)] =
          (x[row * n.channels + c] - run.at<float>(n.mean)[c]) * run.at<float>(n.deviation)[c];
    }
  }
  return coherence_of({some, static_cast<std::size_t>(channels)});
}

// Behind the statistics, where a run asks for it.
void emit_coherence(Builder& b, const BatchNorm& n) {
  b.emit({n.x, n.mean, n.deviation}, [n, place = *b.bounded(n.weight)](const Run& run) {
    if (const SlotBounds* const bounds = run.coding->measured()) {
      bounds->set_coherence(place, n.mixes ? some_coherence(n, run) : 1);
    }
  });
}

// The kernel emitted last may write y where the residual lies, or x: it reads an element before it writes y's.
void allow_in_place(Builder& b, const BatchNorm& n) {
  const Tensor& from = n.residual.defined() ? n.residual : n.x;
  if (from.lies_like(n.y)) b.writes_in_place(from, n.y);
}

template <typename T>
void forward(Builder& b, const BatchNorm& n) {
  const auto normalise_all = [n](const Run& run) {  // uses the statistics that are there
    share_rows(run, n, [&](const Rows& rows) { normalise_rows<T>(n, run, rows, {0, n.channels}); });
  };
  const std::vector<Tensor> statistics = {n.x,         n.weight, n.bias,  n.running_mean, n.running_var, n.mean,
                                          n.deviation, n.scale,  n.shift, n.sums,         n.products};
  const std::vector<Tensor> normalising = {n.x, n.residual, n.y, n.mean, n.scale, n.shift};
  if (b.bounded(n.weight)) {  // x may be encoded in between, and y lie in its place
    b.emit(statistics, [=](const Run& run) { find_statistics<T>(n, run, [](const Channels&) {}); });
    if constexpr (std::is_same_v<T, float>) emit_coherence(b, n);
    b.emit(normalising, normalise_all);
  } else {
    std::vector<Tensor> all = statistics;
    all.insert(all.end(), {n.residual, n.y});
    b.emit(all, [=](const Run& run) {
      const bool by_rows = goes_by_rows(run, n);
      find_statistics<T>(n, run, [&](const Channels& of) {
        if (!by_rows) normalise_rows<T>(n, run, {0, n.rows}, of);
      });
      if (by_rows) normalise_all(run);
    });
  }
  allow_in_place(b, n);
  b.recomputable(n.y, normalising, normalise_all, RecomputeCost::kPass);
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

// Arguments of the backward. Tensors that nobody wants are undefined.
struct Gradients {
  BatchNorm n;
  Tensor dy;
  bool by_output = false;  // the relu's mask is read from y
  Builder::Part dweight, dbias, dx;
  Tensor less, slope;  // [C]: what normalise_backward() takes off
};

// What the backward's two kernels do with some rows, `x` their first.
template <typename T>
void sum_gradients(const Gradients& g, const Run& run, const Rows& rows, const Channels& of, const T* x) {
  const std::int64_t at = rows.first * g.n.channels + of.first, to = rows.set * g.n.channels + of.first;
  column_gradients(normalisation<T>(g.n, run, of), x + of.first, g.by_output ? run.at<T>(g.n.y) + at : nullptr,
                   g.n.channels, rows.count, of.count, run.at<T>(g.dy) + at, run.at<double>(g.n.sums) + to,
                   run.at<double>(g.n.products) + to);
}

template <typename T>
void join_gradients(const Gradients& g, const Run& run, const Channels& of) {
  reduce<T>(g.n, run, of, g.dweight, g.dbias, run.at<T>(g.less), run.at<T>(g.slope));
}

template <typename T>
void pass_on(const Gradients& g, const Run& run, const Rows& rows, const T* x) {
  const std::int64_t at = rows.first * g.n.channels;
  Normalisation<T> by = normalisation<T>(g.n, run, {0, g.n.channels});
  by.relu = g.n.relu && !g.by_output;
  normalise_backward(by, run.at<T>(g.less), run.at<T>(g.slope), x, run.at<T>(g.dy) + at, g.n.channels, rows.count,
                     g.n.channels, run.at<T>(g.dx.tensor) + at, g.dx.add);
}

// What stands in for the kernel emitted last where x lies encoded: each thread decodes a set of rows at a time.
// `touched`: what the kernel touches, x first.
template <typename Work, typename Finish>
void allow_by_sets(Builder& b, const BatchNorm& n, std::vector<Tensor> touched, const Work& work,
                   const Finish& finish) {
  if (!b.bounded(n.weight)) return;
  const std::int64_t piece = n.sets.length * n.channels;
  const Tensor memory = b.scratch(piece);
  touched.front() = memory;
  const auto kernel = [=](std::size_t i) -> Kernel {
    return [=](const Run& run) {
      share(run.team, n.sets, [&](std::int64_t first, std::int64_t count, int thread) {
        auto* const x = run.own<float>(memory, thread);
        run.coding->decode(run, i, first * n.channels, count * n.channels, x, nullptr);
        work(run, Rows{first, count, first / n.sets.length}, x);
      });
      finish(run);
    };
  };
  b.reads_for_norm(n.x, n.weight, {n.mean, n.deviation}, {piece, std::move(touched), kernel});
}

template <typename T>
void emit_sums(Builder& b, const Gradients& g) {
  const BatchNorm& n = g.n;
  const std::vector<Tensor> touched = {n.x,           g.by_output ? n.y : Tensor{},
                                       g.dy,          n.mean,
                                       n.scale,       n.shift,
                                       n.sums,        n.products,
                                       g.less,        g.slope,
                                       n.deviation,   g.dweight.tensor,
                                       g.dbias.tensor};
  b.emit(touched, [g](const Run& run) {
    const auto sum = [&](const Rows& rows, const Channels& of) {
      sum_gradients<T>(g, run, rows, of, run.at<T>(g.n.x) + rows.first * g.n.channels);
    };
    sum_rows(run, g.n, sum, [&](const Channels& of) { join_gradients<T>(g, run, of); });
  });
  if constexpr (std::is_same_v<T, float>) {
    const Channels all{0, n.channels};
    allow_by_sets(
        b, n, touched,
        [g, all](const Run& run, const Rows& rows, const float* x) { sum_gradients<float>(g, run, rows, all, x); },
        [g, all](const Run& run) { join_gradients<float>(g, run, all); });
  }
}

template <typename T>
void emit_pass_on(Builder& b, const Gradients& g) {
  const BatchNorm& n = g.n;
  std::vector<Tensor> touched = {n.x, g.dy, g.dx.tensor, n.mean, n.scale, n.shift, g.less, g.slope};
  b.emit(touched, [g](const Run& run) {
    share_rows(run, g.n,
               [&](const Rows& rows) { pass_on<T>(g, run, rows, run.at<T>(g.n.x) + rows.first * g.n.channels); });
  });
  if constexpr (std::is_same_v<T, float>) {
    touched.push_back(n.deviation);
    allow_by_sets(
        b, n, touched, [g](const Run& run, const Rows& rows, const float* x) { pass_on<float>(g, run, rows, x); },
        [](const Run&) {});
  }
}

// The noise_gain() of a step that measures, whose sums of dy are known to its bounds.
double gain_of(const Gradients& g, const Run& run, const SlotBounds::Sums& sums, double coherence) {
  const BatchNorm& n = g.n;
  if (!n.batch) return 0;  // dx = scale dy
  const auto rows = static_cast<double>(n.rows);
  std::vector<NormChannel> channels(static_cast<std::size_t>(n.channels));
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto deviation = static_cast<double>(run.at<float>(n.deviation)[c]);
    channels[c] = {.scale = static_cast<double>(run.at<float>(n.scale)[c]),
                   .square = sums.squares[c] / rows,
                   .mean = std::sqrt(sums.square_of_sums[c]) / rows,
                   .product = run.at<double>(n.products)[c] * deviation / rows};
  }
  return noise_gain(channels, coherence);
}

// What the bound of x is found from. Behind the kernel that sums up.
void emit_gain(Builder& b, const Gradients& g) {
  const auto place = b.bounded(g.n.weight);
  if (!place) return;
  emit_output_sums(b, g.n.weight, g.dy, g.n.rows);
  b.emit({g.dy, g.n.scale, g.n.deviation, g.n.products}, [g, place = *place](const Run& run) {
    if (const SlotBounds* const bounds = run.coding->measured()) {
      bounds->set_gain(place, gain_of(g, run, bounds->sums(place), bounds->coherence(place)));
    }
  });
}

template <typename T>
void backward(Builder& b, const BatchNorm& norm) {
  const auto given = b.gradient(norm.y);
  if (!given) return;
  Gradients g;
  g.n = norm;
  g.dy = *given;
  if (g.n.signs.defined()) {
    emit_mask(b, g.dy, g.n.signs);
    g.n.relu = false;
  }
  g.by_output = g.n.relu && g.n.residual.defined();
  g.less = b.fresh({g.n.channels});
  g.slope = b.fresh({g.n.channels});
  g.dweight = b.contribute_if_wanted(g.n.weight);
  g.dbias = b.contribute_if_wanted(g.n.bias);
  emit_sums<T>(b, g);
  if constexpr (std::is_same_v<T, float>) emit_gain(b, g);
  const bool residual = b.wants_gradient(g.n.residual);
  if (b.wants_gradient(g.n.x)) {
    // Nobody reads dy any more, but for the residual: the gradient of x takes its place.
    const bool in_place = !residual && !b.gradient(g.n.x);
    g.dx = in_place ? Builder::Part{g.dy, false} : b.contribute(g.n.x);
    emit_pass_on<T>(b, g);
    if (in_place) b.hand_on_gradient(g.n.y, g.n.x);
  }
  if (residual) b.hand_on_gradient(g.n.y, g.n.residual);
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
  if (!reader || site.node().no_gradient) return std::nullopt;
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

// Whether the node's input is made by a linear layer, or by a convolution without groups.
bool mixes_channels(const LoweringContext& site) {
  const auto* const value = site.argument<ValueId>(0);
  const auto maker = value != nullptr ? site.b.maker(*value) : std::nullopt;
  if (!maker) return false;
  const Node& node = site.b.graph().nodes[*maker];
  if (node.op == "aten::linear") return true;
  constexpr std::size_t kGroups = 6;
  if (!node.op.starts_with("aten::conv1d") && !node.op.starts_with("aten::conv2d")) return false;
  const auto* const groups = node.args.size() > kGroups ? argument_if<std::int64_t>(node, kGroups) : nullptr;
  return groups != nullptr && *groups == 1;
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
  n.mixes = mixes_channels(site);
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
