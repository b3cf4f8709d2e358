#pragma once
/// Convolutions of each channel by itself, in loops over channels.

#include <vector>

#include "fusion/cpu/kernels/conv.hpp"

namespace hfta::fusion::cpu {

[[nodiscard]] bool is_depthwise(const ConvShape& shape);

template <typename T>
class DepthwiseProduct final : public DataPass<T> {
 public:
  using typename DataPass<T>::Call;

  DepthwiseProduct(const ConvShape& shape, bool backward, bool add);
  [[nodiscard]] const char* name() const override { return "depthwise"; }
  [[nodiscard]] std::int64_t turned_size() const override { return elements_ * channels_; }
  [[nodiscard]] std::int64_t scratch(int /*threads*/) const override { return source_.scratch(); }
  [[nodiscard]] bool copies_source() const override { return source_.scratch() > 0; }
  void turn(const Call& call) const override;
  void operator()(const Call& call) const override;

 private:
  void apply(const Call& call, std::int64_t image, const T* source) const;

  TapGeometry g_;
  std::int64_t channels_, elements_;
  bool add_;
  Source source_;
  std::vector<std::vector<std::int64_t>> sources_, weights_;  // by phase, by tap: offsets in elements
};

template <typename T>
class DepthwiseGradient final : public WeightPass<T> {
 public:
  using typename WeightPass<T>::Call;

  DepthwiseGradient(const ConvShape& shape, bool add);
  [[nodiscard]] const char* name() const override { return "depthwise"; }
  [[nodiscard]] std::int64_t sums_size() const override { return elements_ * channels_; }
  [[nodiscard]] std::int64_t scratch(int /*threads*/) const override { return sums_size() + source_.scratch(); }
  void operator()(const Call& call) const override;
  void finish(const Call& call) const override;

 private:
  TapGeometry g_;
  std::int64_t channels_, elements_;
  bool add_;
  Source source_;
};

}  // namespace hfta::fusion::cpu
