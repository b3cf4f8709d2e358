#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

/// The rate is the size of every element's first step; schedules have no say.
struct Rprop {
  static constexpr OptimizerKind kind = OptimizerKind::kRprop;
  static constexpr const char* name = "rprop";
  static constexpr const char* states[] = {"prev", "step_size"};
  static constexpr HyperDefault hypers[] = {
      {"lr", 1e-2}, {"eta_minus", 0.5}, {"eta_plus", 1.2}, {"step_size_min", 1e-6}, {"step_size_max", 50}};

  template <typename V>
  struct Numbers {
    V lr, minus, plus, least, most, begins;
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return s.hyper.lr; }),
            each([](const SlotStep& s) { return s.hyper.eta_minus; }),
            each([](const SlotStep& s) { return s.hyper.eta_plus; }),
            each([](const SlotStep& s) { return s.hyper.step_size_min; }),
            each([](const SlotStep& s) { return s.hyper.step_size_max; }),
            each([](const SlotStep& s) { return s.step == 1 ? 1.0 : 0.0; })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& previous, V& size, const Numbers<V>& k) {
    const V agreement = gradient * previous;
    const V factor = select(V(0) < agreement, k.plus, select(agreement < V(0), k.minus, V(1)));
    const V wanted = maximum(select(k.begins != V(0), k.lr, size) * factor, k.least);
    size = select(wanted < k.most, wanted, k.most);
    previous = select(agreement < V(0), V(0) * gradient, gradient);  // no step where the sign has changed
    weight = fma(-sign(previous), size, weight);
  }
};

}  // namespace hfta::fusion::rules
