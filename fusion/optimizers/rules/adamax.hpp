#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Adamax {
  static constexpr OptimizerKind kind = OptimizerKind::kAdamax;
  static constexpr const char* name = "adamax";
  static constexpr const char* states[] = {"exp_avg", "exp_inf"};
  static constexpr HyperDefault hypers[] = {
      {"lr", 2e-3}, {"weight_decay", 0}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}};

  template <typename V>
  struct Numbers {
    V decay, rest1, beta2, eps, size;  // size: lr / (1 - beta1^t)
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.weight_decay; }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta1; }),
            each([](const SlotStep& s) { return s.hyper.beta2; }), each([](const SlotStep& s) { return s.hyper.eps; }),
            each([](const SlotStep& s) { return s.hyper.lr / bias_correction(s.hyper.beta1, s.step); })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& first, V& largest, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    first = lerp(first, d, k.rest1);
    largest = maximum(largest * k.beta2, abs(d) + k.eps);
    weight = weight + -k.size * first / largest;
  }
};

}  // namespace hfta::fusion::rules
