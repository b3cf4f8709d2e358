#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Rmsprop {
  static constexpr OptimizerKind kind = OptimizerKind::kRmsprop;
  static constexpr const char* name = "rmsprop";
  static constexpr const char* states[] = {"square_avg", "momentum_buffer", "grad_avg"};
  static constexpr HyperDefault hypers[] = {{"lr", 1e-2},  {"weight_decay", 0}, {"momentum", 0},
                                            {"eps", 1e-8}, {"alpha", 0.99},     {"centered", 0}};

  template <typename V>
  struct Numbers {
    V lr, decay, momentum, alpha, rest, eps, centered;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.lr; }),
            each([](const SlotStep& s) { return s.hyper.weight_decay; }),
            each([](const SlotStep& s) { return s.hyper.momentum; }),
            each([](const SlotStep& s) { return s.hyper.alpha; }),
            each([](const SlotStep& s) { return 1 - s.hyper.alpha; }),
            each([](const SlotStep& s) { return s.hyper.eps; }),
            each([](const SlotStep& s) { return s.hyper.centered ? 1.0 : 0.0; })};
  }

  // Bit 0: with momentum; bit 1: centered. Without them their states are not touched.
  static constexpr int forms = 4;
  template <typename T>
  static HFTA_BOTH int form(const Numbers<T>& k) {
    return (k.momentum == T(0) ? 0 : 1) + (k.centered == T(0) ? 0 : 2);
  }

  template <int form, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& square, V& buffer, V& mean, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    square = fma(k.rest * d, d, square * k.alpha);
    V spread = square;
    if constexpr ((form & 2) != 0) {
      mean = lerp(mean, d, k.rest);
      spread = fma(-mean, mean, square);
    }
    const V away = d / (sqrt(spread) + k.eps);
    if constexpr ((form & 1) != 0) {
      buffer = fma(k.momentum, buffer, away);
      weight = fma(-k.lr, buffer, weight);
    } else {
      weight = fma(-k.lr, away, weight);
    }
  }
};

}  // namespace hfta::fusion::rules
