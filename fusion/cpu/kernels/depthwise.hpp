#pragma once
/// Convolutions of each channel by itself, in loops over channels: stand-ins for TapProduct and WeightGradient.

#include <vector>

#include "fusion/cpu/kernels/conv.hpp"
#include "fusion/cpu/kernels/conv_gradient.hpp"

namespace hfta::fusion::cpu {

[[nodiscard]] bool is_depthwise(const ConvShape& shape);

/// T: float, double. Immutable; many threads may call one.
template <typename T>
class DepthwiseProduct {
 public:
  DepthwiseProduct(const ConvShape& shape, bool backward, bool add);
  [[nodiscard]] std::int64_t scratch(int threads) const;
  [[nodiscard]] bool copies_source() const { return source_.scratch() > 0; }
  void operator()(const typename TapProduct<T>::Call& call) const;

 private:
  void apply(const typename TapProduct<T>::Call& call, std::int64_t image, const T* source, const T* weights) const;

  TapGeometry g_;
  std::int64_t channels_, elements_;
  bool add_;
  Source source_;
  std::vector<std::vector<std::int64_t>> sources_, weights_;  // by phase, by tap: offsets in elements
};

template <typename T>
class DepthwiseGradient {
 public:
  DepthwiseGradient(const ConvShape& shape, bool add);
  [[nodiscard]] std::int64_t scratch(int threads) const;
  void operator()(const typename WeightGradient<T>::Call& call) const;

 private:
  TapGeometry g_;
  std::int64_t n_, channels_, elements_;
  bool add_;
  Source source_;
};

}  // namespace hfta::fusion::cpu
