#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Nadam {
  static constexpr OptimizerKind kind = OptimizerKind::kNadam;
  static constexpr const char* name = "nadam";
  static constexpr const char* states[] = {"exp_avg", "exp_avg_sq"};
  static constexpr HyperDefault hypers[] = {{"lr", 2e-3},
                                            {"weight_decay", 0},
                                            {"beta1", 0.9},
                                            {"beta2", 0.999},
                                            {"eps", 1e-8},
                                            {"momentum_decay", 4e-3},
                                            {"decoupled_weight_decay", 0}};

  /// The momentum of step t.
  static double momentum(const OptimizerHyper& h, double t) {
    return h.beta1 * (1 - 0.5 * std::pow(0.96, t * h.momentum_decay));
  }

  /// The product of the momenta of steps 1 ... t, as if the slot had always had its present numbers (docs/search.md,
  /// Populations). It is computed anew at each step, so that it is no state to be kept:
  /// the loop ends where the product no longer reaches 1 - product, or where the momentum is beta1 for good.
  static double product(const OptimizerHyper& h, std::int64_t t) {
    double product = 1;
    for (std::int64_t i = 1; i <= t && product > 1e-18; ++i) {
      const double at = momentum(h, static_cast<double>(i));
      if (at == h.beta1) return product * std::pow(at, static_cast<double>(t - i + 1));
      product *= at;
    }
    return product;
  }

  template <typename V>
  struct Numbers {
    V shrink, decay, rest1, beta2, rest2, correction, eps;
    V of_gradient, of_mean;  // how far a step goes along either
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return rules::shrink(s.hyper, s.hyper.decoupled_weight_decay); }),
            each([](const SlotStep& s) { return rules::decay(s.hyper, s.hyper.decoupled_weight_decay); }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta1; }),
            each([](const SlotStep& s) { return s.hyper.beta2; }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta2; }),
            each([](const SlotStep& s) { return bias_correction(s.hyper.beta2, s.step); }),
            each([](const SlotStep& s) { return s.hyper.eps; }),
            each([](const SlotStep& s) {
              return s.hyper.lr * (1 - momentum(s.hyper, static_cast<double>(s.step))) / (1 - product(s.hyper, s.step));
            }),
            each([](const SlotStep& s) {
              const double next = momentum(s.hyper, static_cast<double>(s.step + 1));
              return s.hyper.lr * next / (1 - product(s.hyper, s.step) * next);
            })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& first, V& second, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    first = lerp(first, d, k.rest1);
    second = fma(k.rest2 * d, d, second * k.beta2);
    const V spread = sqrt(second / k.correction) + k.eps;
    weight = weight * k.shrink + -k.of_gradient * d / spread + -k.of_mean * first / spread;
  }
};

}  // namespace hfta::fusion::rules
