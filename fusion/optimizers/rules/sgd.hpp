#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

struct Sgd {
  static constexpr OptimizerKind kind = OptimizerKind::kSgd;
  static constexpr const char* name = "sgd";
  static constexpr const char* states[] = {"momentum_buffer"};
  static constexpr HyperDefault hypers[] = {
      {"lr", 1e-3}, {"weight_decay", 0}, {"momentum", 0}, {"dampening", 0}, {"nesterov", 0}};

  template <typename V>
  struct Numbers {
    V lr, decay, momentum, undamped, nesterov, begins;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.lr; }),
            each([](const SlotStep& s) { return s.hyper.weight_decay; }),
            each([](const SlotStep& s) { return s.hyper.momentum; }),
            each([](const SlotStep& s) { return 1 - s.hyper.dampening; }),
            each([](const SlotStep& s) { return s.hyper.nesterov ? 1.0 : 0.0; }),
            each([](const SlotStep& s) { return s.step == 1 ? 1.0 : 0.0; })};
  }

  // 0: without momentum, where the buffer is not touched; 1: with; 2: with Nesterov's.
  static constexpr int forms = 3;
  template <typename T>
  static HFTA_BOTH int form(const Numbers<T>& k) {
    return k.momentum == T(0) ? 0 : k.nesterov == T(0) ? 1 : 2;
  }

  template <int form, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& buffer, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    if constexpr (form == 0) {
      weight = fma(-k.lr, d, weight);
    } else {
      buffer = select(k.begins != V(0), d, fma(k.undamped, d, k.momentum * buffer));
      if constexpr (form == 1) weight = fma(-k.lr, buffer, weight);
      if constexpr (form == 2) weight = fma(-k.lr, fma(k.momentum, buffer, d), weight);
    }
  }
};

}  // namespace hfta::fusion::rules
