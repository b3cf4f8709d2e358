#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Radam {
  static constexpr OptimizerKind kind = OptimizerKind::kRadam;
  static constexpr const char* name = "radam";
  static constexpr const char* states[] = {"exp_avg", "exp_avg_sq"};
  static constexpr HyperDefault hypers[] = {{"lr", 1e-3},     {"weight_decay", 0}, {"beta1", 0.9},
                                            {"beta2", 0.999}, {"eps", 1e-8},       {"decoupled_weight_decay", 0}};

  /// The factor that rectifies the variance of the adaptive rate, less its bias; 0 while there are too few steps for
  /// it. Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2020), Algorithm 2.
  static double rectification(const OptimizerHyper& h, std::int64_t t) {
    const double correction = bias_correction(h.beta2, t), most = 2 / (1 - h.beta2) - 1;
    const double length = most - 2 * static_cast<double>(t) * std::pow(h.beta2, static_cast<double>(t)) / correction;
    if (!(length > 5)) return 0;
    return std::sqrt(correction) * std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
  }

  template <typename V>
  struct Numbers {
    V shrink, decay, rest1, beta2, rest2, eps;
    V size, rectified;  // size: of the step, with all factors; rectified: whether the rate is adaptive at this step
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return rules::shrink(s.hyper, s.hyper.decoupled_weight_decay); }),
            each([](const SlotStep& s) { return rules::decay(s.hyper, s.hyper.decoupled_weight_decay); }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta1; }),
            each([](const SlotStep& s) { return s.hyper.beta2; }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta2; }),
            each([](const SlotStep& s) { return s.hyper.eps; }),
            each([](const SlotStep& s) {
              const double factor = rectification(s.hyper, s.step);
              return s.hyper.lr / bias_correction(s.hyper.beta1, s.step) * (factor > 0 ? factor : 1);
            }),
            each([](const SlotStep& s) { return rectification(s.hyper, s.step) > 0 ? 1.0 : 0.0; })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& first, V& second, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    first = lerp(first, d, k.rest1);
    second = fma(k.rest2 * d, d, second * k.beta2);
    weight = weight * k.shrink + -k.size * first / select(k.rectified != V(0), sqrt(second) + k.eps, V(1));
  }
};

}  // namespace hfta::fusion::rules
