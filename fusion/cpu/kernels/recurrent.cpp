#include "fusion/cpu/kernels/recurrent.hpp"

#include "fusion/cpu/kernels/activations.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
inline __attribute__((always_inline)) void add_to_rows(T* rows, const T* bias, std::int64_t n, std::int64_t width) {
  for (std::int64_t r = 0; bias != nullptr && r < n; ++r) {
    for (std::int64_t j = 0; j < width; ++j) rows[r * width + j] += bias[j];
  }
}

template <typename T>
inline __attribute__((always_inline)) void lstm_row(std::int64_t h, T* __restrict gates, const T* __restrict c_before,
                                                    T* __restrict c_after, T* __restrict h_after) {
  T *const i = gates, *const f = gates + h, *const g = gates + 2 * h, *const o = gates + 3 * h;
  for (std::int64_t j = 0; j < h; ++j) {
    i[j] = sigmoid(i[j]);
    f[j] = sigmoid(f[j]);
    o[j] = sigmoid(o[j]);
    g[j] = tangent(g[j]);
  }
  for (std::int64_t j = 0; j < h; ++j) {
    c_after[j] = f[j] * c_before[j] + i[j] * g[j];
    h_after[j] = o[j] * tangent(c_after[j]);
  }
}

template <typename T>
inline __attribute__((always_inline)) void gru_row(std::int64_t h, T* __restrict gates, const T* __restrict hidden,
                                                   const T* __restrict h_before, T* __restrict h_after) {
  T *const r = gates, *const z = gates + h, *const fresh = gates + 2 * h;
  for (std::int64_t j = 0; j < h; ++j) {
    r[j] = sigmoid(r[j] + hidden[j]);
    z[j] = sigmoid(z[j] + hidden[h + j]);
    fresh[j] = tangent(fresh[j] + r[j] * hidden[2 * h + j]);
    h_after[j] = (h_before[j] - fresh[j]) * z[j] + fresh[j];
  }
}

template <typename T>
inline __attribute__((always_inline)) void step_typed(Cell cell, const CellStep<T>& s) {
  const std::int64_t width = gates_of(cell) * s.h;
  add_to_rows(cell == Cell::kGru ? s.hidden : s.gates, s.bias, s.n, width);
  for (std::int64_t r = 0; r < s.n; ++r) {
    T* const gates = s.gates + r * width;
    T* const h_after = s.h_after + r * s.h;
    switch (cell) {
      case Cell::kLstm:
        lstm_row(s.h, gates, s.c_before + r * s.h, s.c_after + r * s.h, h_after);
        break;
      case Cell::kGru:
        gru_row(s.h, gates, s.hidden + r * width, s.h_before + r * s.h, h_after);
        break;
      case Cell::kTanh:
        for (std::int64_t j = 0; j < s.h; ++j) h_after[j] = tangent(gates[j]);
        break;
      case Cell::kRelu:
        for (std::int64_t j = 0; j < s.h; ++j) h_after[j] = gates[j] < T{0} ? T{0} : gates[j];  // NaN stays
        break;
    }
  }
}

// One row of each that the cell has.
template <typename T>
struct Row {
  std::int64_t h = 0;
  const T *gates = nullptr, *hidden = nullptr, *h_before = nullptr, *c_before = nullptr, *c_after = nullptr;
  const T *dh = nullptr, *dc = nullptr;
  T *dgates = nullptr, *dhidden = nullptr, *dh_before = nullptr, *dc_before = nullptr;
};

template <typename T>
inline __attribute__((always_inline)) void lstm_row_back(const Row<T>& row) {
  const std::int64_t h = row.h;
  const T* const __restrict i = row.gates, * const __restrict dh = row.dh, * const __restrict c_before = row.c_before;
  const T *const f = i + h, *const g = i + 2 * h, *const o = i + 3 * h;
  T* const __restrict d = row.dgates, * const __restrict dc_before = row.dc_before;
  for (std::int64_t j = 0; j < h; ++j) {
    const T c = tangent(row.c_after[j]);
    const T dc = row.dc[j] + dh[j] * o[j] * (T{1} - c * c);
    d[j] = dc * g[j] * i[j] * (T{1} - i[j]);
    d[h + j] = dc * c_before[j] * f[j] * (T{1} - f[j]);
    d[2 * h + j] = dc * i[j] * (T{1} - g[j] * g[j]);
    d[3 * h + j] = dh[j] * c * o[j] * (T{1} - o[j]);
    dc_before[j] += dc * f[j];
  }
}

template <typename T>
inline __attribute__((always_inline)) void gru_row_back(const Row<T>& row) {
  const std::int64_t h = row.h;
  const T* const __restrict r = row.gates, * const __restrict hidden = row.hidden, * const __restrict dh = row.dh;
  const T *const z = r + h, *const fresh = r + 2 * h;
  T* const __restrict d = row.dgates, * const __restrict dhidden = row.dhidden;
  T* const __restrict dh_before = row.dh_before;
  for (std::int64_t j = 0; j < h; ++j) {
    const T dfresh = dh[j] * (T{1} - z[j]) * (T{1} - fresh[j] * fresh[j]);
    const T dz = dh[j] * (row.h_before[j] - fresh[j]) * z[j] * (T{1} - z[j]);
    const T dr = dfresh * hidden[2 * h + j] * r[j] * (T{1} - r[j]);
    d[j] = dhidden[j] = dr;
    d[h + j] = dhidden[h + j] = dz;
    d[2 * h + j] = dfresh;
    dhidden[2 * h + j] = dfresh * r[j];
    dh_before[j] += dh[j] * z[j];
  }
}

template <typename T>
inline __attribute__((always_inline)) void back_typed(Cell cell, const CellGradient<T>& g) {
  const CellStep<T>& s = g.step;
  const std::int64_t h = s.h, width = gates_of(cell) * h;
  for (std::int64_t r = 0; r < s.n; ++r) {
    const std::int64_t state = r * h, sums = r * width;
    const T *const dh = g.dh + state, *const h_after = s.h_after + state;
    T* const dgates = g.dgates + sums;
    switch (cell) {
      case Cell::kLstm:
        lstm_row_back(Row<T>{.h = h,
                             .gates = s.gates + sums,
                             .c_before = s.c_before + state,
                             .c_after = s.c_after + state,
                             .dh = dh,
                             .dc = g.dc + state,
                             .dgates = dgates,
                             .dc_before = g.dc_before + state});
        break;
      case Cell::kGru:
        gru_row_back(Row<T>{.h = h,
                            .gates = s.gates + sums,
                            .hidden = s.hidden + sums,
                            .h_before = s.h_before + state,
                            .dh = dh,
                            .dgates = dgates,
                            .dhidden = g.dhidden + sums,
                            .dh_before = g.dh_before + state});
        break;
      case Cell::kTanh:
        for (std::int64_t j = 0; j < h; ++j) dgates[j] = dh[j] * (T{1} - h_after[j] * h_after[j]);
        break;
      case Cell::kRelu:
        for (std::int64_t j = 0; j < h; ++j) dgates[j] = h_after[j] > T{0} ? dh[j] : T{0};
        break;
    }
  }
}

}  // namespace

std::int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

void advance(Cell cell, const CellStep<float>& step) {
  simd::multiversion([&] { step_typed(cell, step); });
}
void advance(Cell cell, const CellStep<double>& step) {
  simd::multiversion([&] { step_typed(cell, step); });
}
void retreat(Cell cell, const CellGradient<float>& gradient) {
  simd::multiversion([&] { back_typed(cell, gradient); });
}
void retreat(Cell cell, const CellGradient<double>& gradient) {
  simd::multiversion([&] { back_typed(cell, gradient); });
}

}  // namespace hfta::fusion::cpu
