// Statistics of a batch norm's channels, and its output.
#include <cmath>

#include "fusion/cpu/ops/batch_norm_passes.hpp"

namespace hfta::fusion::cpu {
namespace {

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

}  // namespace

template <typename T>
void emit_batch_norm(Builder& b, const BatchNorm& n) {
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

template void emit_batch_norm<float>(Builder&, const BatchNorm&);
template void emit_batch_norm<double>(Builder&, const BatchNorm&);

}  // namespace hfta::fusion::cpu
