#include "fusion/cpu/kernels/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // rows summed up by themselves, so that long sums keep their digits

template <typename T>
inline __attribute__((always_inline)) void bias_rows(T* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                                                     const T* bias, bool relu) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* __restrict row = y + r * ld;
    if (bias != nullptr && relu) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const T v = row[c] + bias[c];
        row[c] = v < T{0} ? T{0} : v;
      }
    } else if (bias != nullptr) {
      for (std::int64_t c = 0; c < columns; ++c) row[c] += bias[c];
    } else {
      for (std::int64_t c = 0; c < columns; ++c) row[c] = row[c] < T{0} ? T{0} : row[c];
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void mask_rows(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                     std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* __restrict d = dy + r * ld;
    const T* __restrict v = y + r * ld;
    for (std::int64_t c = 0; c < columns; ++c) d[c] = v[c] == T{0} ? T{0} : d[c];
  }
}

template <typename T>
inline __attribute__((always_inline)) void sum_rows(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                    std::int64_t columns, T* sums, bool add) {
  constexpr std::int64_t kColumns = 64;
  for (std::int64_t c0 = 0; c0 < columns; c0 += kColumns) {
    const std::int64_t width = std::min(kColumns, columns - c0);
    T total[kColumns];
    for (std::int64_t c = 0; c < width; ++c) total[c] = add ? sums[c0 + c] : T{0};
    for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      T part[kColumns] = {};
      const std::int64_t end = std::min(r0 + kBlock, rows);
      for (std::int64_t r = r0; r < end; ++r) {
        T* __restrict d = dy + r * ld + c0;
        if (y != nullptr) {
          const T* __restrict v = y + r * ld + c0;
          for (std::int64_t c = 0; c < width; ++c) d[c] = v[c] == T{0} ? T{0} : d[c];
        }
        for (std::int64_t c = 0; c < width; ++c) part[c] += d[c];
      }
      for (std::int64_t c = 0; c < width; ++c) total[c] += part[c];
    }
    for (std::int64_t c = 0; c < width; ++c) sums[c0 + c] = total[c];
  }
}

template <typename T>
inline __attribute__((always_inline)) void mask_sum(T* dy, const T* y, std::int64_t ld, std::int64_t rows,
                                                    std::int64_t columns, T* sums, bool add) {
  if (sums != nullptr) {
    sum_rows(dy, y, ld, rows, columns, sums, add);
  } else if (y != nullptr) {
    mask_rows(dy, y, ld, rows, columns);
  }
}

// Divisor of the sum of the rows' losses.
template <typename T>
double total_weight(const CrossEntropy<T>& task, const std::int64_t* classes_of) {
  if (!task.mean) return 1;
  if (task.weight == nullptr) {
    return static_cast<double>(task.rows - std::count(classes_of, classes_of + task.rows, task.ignored));
  }
  double total = 0;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::int64_t wanted = classes_of[r];
    if (wanted != task.ignored && wanted >= 0 && wanted < task.classes)
      total += static_cast<double>(task.weight[wanted]);
  }
  return total;
}

// The row's loss with weights; its gradient times `share` to `out` (null: not wanted). `p`: exponentials, of that sum.
template <typename T>
inline __attribute__((always_inline)) double weighted_row(const CrossEntropy<T>& task, const T* row,
                                                          std::int64_t wanted, double log_total, double total,
                                                          const T* p, double share, T* out) {
  const double each = task.smoothing / static_cast<double>(task.classes);
  const double own = (1 - task.smoothing) * static_cast<double>(task.weight[wanted]);
  double loss = own * (log_total - static_cast<double>(row[wanted])), weights = 0;
  for (std::int64_t c = 0; c < task.classes; ++c) {
    const auto w = static_cast<double>(task.weight[c]);
    weights += w;
    if (task.smoothing != 0) loss += each * w * (log_total - static_cast<double>(row[c]));
  }
  if (out == nullptr) return loss;
  for (std::int64_t c = 0; c < task.classes; ++c) {
    const double slope =
        (own + each * weights) * static_cast<double>(p[c]) / total - each * static_cast<double>(task.weight[c]);
    out[c] = static_cast<T>((slope - (c == wanted ? own : 0)) * share);
  }
  return loss;
}

template <typename V, typename T>
inline __attribute__((always_inline)) double plain_row(const CrossEntropy<T>& task, const T* row, std::int64_t wanted,
                                                       double log_total, double total, const T* p, double share,
                                                       T* out) {
  const double each = task.smoothing / static_cast<double>(task.classes);
  double loss = log_total - (1 - task.smoothing) * static_cast<double>(row[wanted]);
  if (task.smoothing != 0) loss -= each * static_cast<double>(simd::sum_of<V>(row, task.classes));
  if (out == nullptr) return loss;
  const T scale = static_cast<T>(share / total), less = static_cast<T>(each * share);
  for (std::int64_t c = 0; c < task.classes; ++c) out[c] = p[c] * scale - less;
  out[wanted] -= static_cast<T>((1 - task.smoothing) * share);
  return loss;
}

// Rows [first, first + rows): their losses, to scratch.losses.
template <typename R, typename T>
inline __attribute__((always_inline)) void cross_entropy_rows(R, const CrossEntropy<T>& task, std::int64_t first,
                                                              std::int64_t rows, const T* logits,
                                                              const std::int64_t* classes_of, double share,
                                                              double* losses, T* scratch, T* gradient) {
  using V = simd::Lanes<T, R::kBytes>;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t classes = task.classes;
  for (std::int64_t r = first; r < first + rows; ++r) {
    const T* const row = logits + r * classes;
    T* const out = gradient == nullptr ? nullptr : gradient + r * classes;
    const std::int64_t wanted = classes_of[r];
    double loss = 0;
    if (wanted == task.ignored || wanted < 0 || wanted >= classes) {
      loss = wanted == task.ignored ? 0 : kNan;
      if (out != nullptr) std::fill_n(out, classes, static_cast<T>(loss));
    } else {
      const T largest = simd::largest_of<V>(row, classes);
      const auto total = static_cast<double>(simd::exponentials<V>(row, classes, largest, scratch));
      const double log_total = std::log(total) + static_cast<double>(largest);
      loss = task.weight == nullptr ? plain_row<V>(task, row, wanted, log_total, total, scratch, share, out)
                                    : weighted_row(task, row, wanted, log_total, total, scratch, share, out);
    }
    losses[r] = loss;
  }
}

template <typename T>
double cross_entropy_of(Team* team, const CrossEntropy<T>& task, const T* logits, const std::int64_t* classes_of,
                        T* each, const CrossEntropyScratch<T>& scratch, T* gradient) {
  constexpr std::int64_t kCost = 4;  // cost of an exponential, in plain elements
  const double weight = 1.0 / total_weight(task, classes_of);
  share(team, stretches_of(task.rows, kCost * task.classes), [&](std::int64_t first, std::int64_t rows, int thread) {
    simd::multiversion([&](auto r) {
      cross_entropy_rows(r, task, first, rows, logits, classes_of, weight, scratch.losses,
                         scratch.rows + thread * scratch.ld, gradient);
    });
  });
  double sum = 0;  // summed in the order of the rows
  for (std::int64_t r = 0; r < task.rows; ++r) {
    if (each != nullptr) each[r] = static_cast<T>(scratch.losses[r]);
    sum += scratch.losses[r];
  }
  return sum * weight;
}

// Each column's sum has one owner.
template <typename T>
void mask_and_sum_of(Team* team, T* dy, const T* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* sums,
                     bool add) {
  if (sums == nullptr) {
    share(team, stretches_of(rows, columns), [&](std::int64_t first, std::int64_t count, int) {
      simd::multiversion(
          [&] { mask_sum(dy + first * ld, y == nullptr ? nullptr : y + first * ld, ld, count, columns, sums, add); });
    });
    return;
  }
  constexpr std::int64_t kNarrow = 32, kMany = 256;
  share(team, stretches_of(columns, rows, columns < kMany ? kNarrow : 2 * kNarrow),
        [&](std::int64_t c, std::int64_t width, int) {
          simd::multiversion([&] { mask_sum(dy + c, y == nullptr ? nullptr : y + c, ld, rows, width, sums + c, add); });
        });
}

}  // namespace

void add_bias(float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const float* bias, bool relu) {
  simd::multiversion([&] { bias_rows(y, ld, rows, columns, bias, relu); });
}
void add_bias(double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns, const double* bias, bool relu) {
  simd::multiversion([&] { bias_rows(y, ld, rows, columns, bias, relu); });
}
void mask_and_sum(Team* team, float* dy, const float* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                  float* sums, bool add) {
  mask_and_sum_of(team, dy, y, ld, rows, columns, sums, add);
}
void mask_and_sum(Team* team, double* dy, const double* y, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                  double* sums, bool add) {
  mask_and_sum_of(team, dy, y, ld, rows, columns, sums, add);
}
double cross_entropy(Team* team, const CrossEntropy<float>& task, const float* logits, const std::int64_t* classes_of,
                     float* each, const CrossEntropyScratch<float>& scratch, float* gradient) {
  return cross_entropy_of(team, task, logits, classes_of, each, scratch, gradient);
}
double cross_entropy(Team* team, const CrossEntropy<double>& task, const double* logits, const std::int64_t* classes_of,
                     double* each, const CrossEntropyScratch<double>& scratch, double* gradient) {
  return cross_entropy_of(team, task, logits, classes_of, each, scratch, gradient);
}

}  // namespace hfta::fusion::cpu
