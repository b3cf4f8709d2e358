// Gradients of a batch norm, also where its input lies encoded.
#include <cmath>

#include "fusion/cpu/ops/batch_norm_passes.hpp"

namespace hfta::fusion::cpu {
namespace {

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

}  // namespace

template <typename T>
void emit_batch_norm_backward(Builder& b, const BatchNorm& norm) {
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

template void emit_batch_norm_backward<float>(Builder&, const BatchNorm&);
template void emit_batch_norm_backward<double>(Builder&, const BatchNorm&);

}  // namespace hfta::fusion::cpu
