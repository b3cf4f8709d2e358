#pragma once
/// Gated activations: y = f(x) g, as in GLU variants (Shazeer 2020, arXiv:2002.05202). Tensors have n elements each,
/// without gaps. `team`: who shares the work; null: the caller alone.

#include <cstdint>

#include "fusion/cpu/kernels/pointwise.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// y = f(x) gate, of an op that has_costly_slope().
void gate(Team* team, Unary op, const float* x, const float* gate, float* y, std::int64_t n);
void gate(Team* team, Unary op, const double* x, const double* gate, double* y, std::int64_t n);

/// Memory for gate()'s gradients; null where one is not wanted.
template <typename T>
struct GateGradients {
  T* x = nullptr;
  T* gate = nullptr;
  bool add_x = false, add_gate = false;
};
/// f(x) and f'(x) are computed anew: that costs less than to write them down and read them.
void gate_backward(Team* team, Unary op, const float* x, const float* gate, const float* dy,
                   const GateGradients<float>& to, std::int64_t n);
void gate_backward(Team* team, Unary op, const double* x, const double* gate, const double* dy,
                   const GateGradients<double>& to, std::int64_t n);

}  // namespace hfta::fusion::cpu
