#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Adagrad {
  static constexpr OptimizerKind kind = OptimizerKind::kAdagrad;
  static constexpr const char* name = "adagrad";
  static constexpr const char* states[] = {"sum"};
  static constexpr HyperDefault hypers[] = {
      {"lr", 1e-2}, {"weight_decay", 0}, {"eps", 1e-10}, {"lr_decay", 0}, {"initial_accumulator_value", 0}};

  template <typename V>
  struct Numbers {
    V rate, decay, eps, initial, begins;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {
        each([](const SlotStep& s) { return s.hyper.lr / (1 + static_cast<double>(s.step - 1) * s.hyper.lr_decay); }),
        each([](const SlotStep& s) { return s.hyper.weight_decay; }),
        each([](const SlotStep& s) { return s.hyper.eps; }),
        each([](const SlotStep& s) { return s.hyper.initial_accumulator_value; }),
        each([](const SlotStep& s) { return s.step == 1 ? 1.0 : 0.0; })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& sum, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    sum = fma(d, d, select(k.begins != V(0), k.initial, sum));
    weight = fma(-k.rate, d / (sqrt(sum) + k.eps), weight);
  }
};

}  // namespace hfta::fusion::rules
