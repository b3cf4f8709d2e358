#pragma once
/// How batch norms run: what batch_norm.cpp has read becomes kernels, forward and backward, of kernels/batch_norm.hpp.

#include <algorithm>

#include "fusion/cpu/kernels/batch_norm.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {

/// x [N, C, ...] normalised over all but C, which is last in memory; with a residual added and a relu behind it.
struct BatchNorm {
  Tensor x, weight, bias, running_mean, running_var, residual, y;  ///< Those that a norm lacks are undefined.
  Tensor signs;        ///< Signs of y, where its relu reads neither x nor y.
  bool batch = false;  ///< Normalise by the batch's statistics.
  bool relu = false;
  bool mixes = false;  ///< Each channel of x is a sum of all of what the layer before it reads.
  std::function<double(const Run&)> momentum, eps;
  std::int64_t rows = 0, channels = 0;
  Tensor mean, deviation, scale, shift;  ///< [C]; deviation: its inverse.
  Stretches sets;                        ///< Sets of rows, which are summed by themselves.
  Tensor sums, products;                 ///< [sets, C], double; in the end the first row has those of all rows.
};

/// Emits what computes y, and what follows the running statistics.
template <typename T>
void emit_batch_norm(Builder& b, const BatchNorm& norm);

/// Emits what computes gradients of x, the residual, weight and bias where somebody wants them and y has one.
template <typename T>
void emit_batch_norm_backward(Builder& b, const BatchNorm& norm);

/// Channels [first, first + count).
struct Channels {
  std::int64_t first = 0, count = 0;
};

/// Rows [first, first + count), of one set or of all.
struct Rows {
  std::int64_t first = 0, count = 0, set = 0;
};

template <typename Work>
void share_rows(const Run& run, const BatchNorm& n, const Work& work) {
  share(run.team, n.sets, [&](std::int64_t first, std::int64_t count, int) {
    work(Rows{first, count, first / n.sets.length});
  });
}

/// Whether a team shares rows: a thread mostly finds those in its cache that it has written there. Elsewhere some
/// channels are taken at a time: what was summed is in the cache when it is used.
inline bool goes_by_rows(const Run& run, const BatchNorm& n) { return run.team != nullptr && n.sets.count() > 1; }

/// Sums over the rows of each set; then join(channels), for all at once where it goes by rows.
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

}  // namespace hfta::fusion::cpu
