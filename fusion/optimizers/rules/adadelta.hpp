#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Adadelta {
  static constexpr OptimizerKind kind = OptimizerKind::kAdadelta;
  static constexpr const char* name = "adadelta";
  static constexpr const char* states[] = {"square_avg", "acc_delta"};
  static constexpr HyperDefault hypers[] = {{"lr", 1}, {"weight_decay", 0}, {"eps", 1e-6}, {"rho", 0.9}};

  template <typename V>
  struct Numbers {
    V lr, decay, rho, rest, eps;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.lr; }),
            each([](const SlotStep& s) { return s.hyper.weight_decay; }),
            each([](const SlotStep& s) { return s.hyper.rho; }),
            each([](const SlotStep& s) { return 1 - s.hyper.rho; }),
            each([](const SlotStep& s) { return s.hyper.eps; })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& square, V& moved, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    square = fma(k.rest * d, d, square * k.rho);
    const V delta = sqrt(moved + k.eps) / sqrt(square + k.eps) * d;
    moved = fma(k.rest * delta, delta, moved * k.rho);
    weight = fma(-k.lr, delta, weight);
  }
};

}  // namespace hfta::fusion::rules
