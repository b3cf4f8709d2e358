#pragma once
/// Sums of the gradients of several batches, over one slot's row of one parameter, on a CPU. Without torch.

#include <cstddef>

namespace hfta::fusion {

/// sum += weight * gradient, n elements each.
void add_gradient(float* sum, const float* gradient, double weight, std::size_t n);
void add_gradient(double* sum, const double* gradient, double weight, std::size_t n);

/// gradient = sum / weight, or sum where that is 0; the sum is zero then.
void take_mean(float* gradient, float* sum, double weight, std::size_t n);
void take_mean(double* gradient, double* sum, double weight, std::size_t n);

}  // namespace hfta::fusion
