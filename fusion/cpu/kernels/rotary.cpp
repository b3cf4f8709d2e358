#include "fusion/cpu/kernels/rotary.hpp"

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
inline __attribute__((always_inline)) void forward_row(const T* __restrict x, const T* __restrict cos,
                                                       const T* __restrict sin, T* __restrict y, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T first = x[i], second = x[i + half];
    y[i] = first * cos[i] - second * sin[i];
    y[i + half] = second * cos[i + half] + first * sin[i + half];
  }
}

template <bool kAdd, typename T>
inline __attribute__((always_inline)) void backward_row(const T* __restrict dy, const T* __restrict cos,
                                                        const T* __restrict sin, T* __restrict dx, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T first = dy[i], second = dy[i + half];
    const T to_first = first * cos[i] + second * sin[i + half], to_second = second * cos[i + half] - first * sin[i];
    dx[i] = kAdd ? dx[i] + to_first : to_first;
    dx[i + half] = kAdd ? dx[i + half] + to_second : to_second;
  }
}

template <typename T, typename Row>
inline __attribute__((always_inline)) void for_rows(const RotaryRows<T>& all, Row row) {
  for (std::int64_t r = 0; r < all.rows; ++r) {
    row(all.x + r * all.x_step, all.cos + r * all.cos_step, all.sin + r * all.sin_step, all.y + r * all.y_step,
        all.n / 2);
  }
}

template <typename T>
void forward(const RotaryRows<T>& rows) {
  simd::multiversion([&] {
    for_rows(
        rows, [](const T* x, const T* cos, const T* sin, T* y, std::int64_t half)
                  __attribute__((always_inline)) { forward_row(x, cos, sin, y, half); });
  });
}

template <bool kAdd, typename T>
void backward(const RotaryRows<T>& rows) {
  simd::multiversion([&] {
    for_rows(
        rows, [](const T* dy, const T* cos, const T* sin, T* dx, std::int64_t half)
                  __attribute__((always_inline)) { backward_row<kAdd>(dy, cos, sin, dx, half); });
  });
}

}  // namespace

void rotate(const RotaryRows<float>& rows) { forward(rows); }
void rotate(const RotaryRows<double>& rows) { forward(rows); }
void rotate_backward(const RotaryRows<float>& rows, bool add) { add ? backward<true>(rows) : backward<false>(rows); }
void rotate_backward(const RotaryRows<double>& rows, bool add) { add ? backward<true>(rows) : backward<false>(rows); }

}  // namespace hfta::fusion::cpu
