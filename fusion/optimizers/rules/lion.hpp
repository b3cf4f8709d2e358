#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Lion {
  static constexpr OptimizerKind kind = OptimizerKind::kLion;
  static constexpr const char* name = "lion";
  static constexpr const char* states[] = {"exp_avg"};
  static constexpr HyperDefault hypers[] = {{"lr", 1e-4}, {"weight_decay", 0}, {"beta1", 0.9}, {"beta2", 0.99}};

  template <typename V>
  struct Numbers {
    V lr, shrink, rest1, rest2;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.lr; }),
            each([](const SlotStep& s) { return rules::shrink(s.hyper, true); }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta1; }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta2; })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& mean, const Numbers<V>& k) {
    weight = fma(-k.lr, sign(lerp(mean, gradient, k.rest1)), weight * k.shrink);
    mean = lerp(mean, gradient, k.rest2);
  }
};

}  // namespace hfta::fusion::rules
