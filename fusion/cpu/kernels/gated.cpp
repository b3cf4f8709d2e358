#include "fusion/cpu/kernels/gated.hpp"

#include "fusion/cpu/kernels/activations.hpp"
#include "fusion/cpu/kernels/elements.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
inline __attribute__((always_inline)) void forward(Unary op, const T* __restrict x, const T* __restrict gate,
                                                   T* __restrict y, std::int64_t n) {
  with_value_and_slope<T>(
      op, [&](auto f) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]).value * gate[i];
      });
}

template <bool kAdd, typename T>
inline __attribute__((always_inline)) void store(T* to, std::int64_t i, T value) {
  to[i] = kAdd ? to[i] + value : value;
}

// Loops of which one stores `dx`, one `dgate`, one both: what they do is settled outside.
template <bool kAddX, bool kAddGate, typename T, typename F>
inline __attribute__((always_inline)) void backward_loops(F f, const T* __restrict x, const T* __restrict gate,
                                                          const T* __restrict dy, T* __restrict dx, T* __restrict dgate,
                                                          std::int64_t n) {
  if (dgate == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) store<kAddX>(dx, i, dy[i] * gate[i] * f(x[i]).slope);
  } else if (dx == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) store<kAddGate>(dgate, i, dy[i] * f(x[i]).value);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const ValueAndSlope<T> both = f(x[i]);
      const T given = dy[i];
      store<kAddX>(dx, i, given * gate[i] * both.slope);
      store<kAddGate>(dgate, i, given * both.value);
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void backward(Unary op, const T* x, const T* gate, const T* dy, T* dx, bool add_x,
                                                    T* dgate, bool add_gate, std::int64_t n) {
  with_value_and_slope<T>(
      op, [&](auto f) __attribute__((always_inline)) {
        if (add_x && add_gate) return backward_loops<true, true>(f, x, gate, dy, dx, dgate, n);
        if (add_x) return backward_loops<true, false>(f, x, gate, dy, dx, dgate, n);
        if (add_gate) return backward_loops<false, true>(f, x, gate, dy, dx, dgate, n);
        backward_loops<false, false>(f, x, gate, dy, dx, dgate, n);
      });
}

template <typename T>
void forward_of(Team* team, Unary op, const T* x, const T* gate, T* y, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        forward(op, x + i, gate + i, y + i, count);
      });
}

template <typename T>
void backward_of(Team* team, Unary op, const T* x, const T* gate, const T* dy, const GateGradients<T>& to,
                 std::int64_t n) {
  if (to.x == nullptr && to.gate == nullptr) return;
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        T* const dx = to.x == nullptr ? nullptr : to.x + i;
        T* const dgate = to.gate == nullptr ? nullptr : to.gate + i;
        backward(op, x + i, gate + i, dy + i, dx, to.add_x, dgate, to.add_gate, count);
      });
}

}  // namespace

void gate(Team* team, Unary op, const float* x, const float* gate, float* y, std::int64_t n) {
  forward_of(team, op, x, gate, y, n);
}
void gate(Team* team, Unary op, const double* x, const double* gate, double* y, std::int64_t n) {
  forward_of(team, op, x, gate, y, n);
}
void gate_backward(Team* team, Unary op, const float* x, const float* gate, const float* dy,
                   const GateGradients<float>& to, std::int64_t n) {
  backward_of(team, op, x, gate, dy, to, n);
}
void gate_backward(Team* team, Unary op, const double* x, const double* gate, const double* dy,
                   const GateGradients<double>& to, std::int64_t n) {
  backward_of(team, op, x, gate, dy, to, n);
}

}  // namespace hfta::fusion::cpu
