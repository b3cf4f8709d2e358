#include "fusion/cpu/kernels/conv_pass.hpp"

#include "fusion/cpu/kernels/conv.hpp"
#include "fusion/cpu/kernels/conv_gradient.hpp"
#include "fusion/cpu/kernels/depthwise.hpp"
#include "fusion/cpu/kernels/winograd.hpp"
#include "fusion/cpu/kernels/winograd_gradient.hpp"

namespace hfta::fusion::cpu {

template <typename T>
std::unique_ptr<const DataPass<T>> data_pass(const ConvShape& s, bool backward, bool add) {
  if (is_depthwise(s)) return std::make_unique<const DepthwiseProduct<T>>(s, backward, add);
  if (winograd_pays(s, backward)) return std::make_unique<const WinogradProduct<T>>(s, backward, add);
  return std::make_unique<const TapProduct<T>>(s, backward, add);
}

template <typename T>
std::unique_ptr<const WeightPass<T>> weight_pass(const ConvShape& s, bool add) {
  if (is_depthwise(s)) return std::make_unique<const DepthwiseGradient<T>>(s, add);
  if (winograd_pays(s, false)) return std::make_unique<const WinogradGradient<T>>(s, add);
  return std::make_unique<const WeightGradient<T>>(s, add);
}

template std::unique_ptr<const DataPass<float>> data_pass(const ConvShape&, bool, bool);
template std::unique_ptr<const DataPass<double>> data_pass(const ConvShape&, bool, bool);
template std::unique_ptr<const WeightPass<float>> weight_pass(const ConvShape&, bool);
template std::unique_ptr<const WeightPass<double>> weight_pass(const ConvShape&, bool);

}  // namespace hfta::fusion::cpu
