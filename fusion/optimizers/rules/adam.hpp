#pragma once
#include "fusion/optimizers/element.hpp"

namespace hfta::fusion::rules {

/// Adam and AdamW, which differ in what weight decay does.
template <bool decoupled>
struct AdamRule {
  static constexpr const char* states[2] = {"exp_avg", "exp_avg_sq"};  // without its 2, nvcc 13 takes it for empty

  template <typename V>
  struct Numbers {
    V shrink, decay;
    V rest1, beta2, rest2;  // 1 - beta1, beta2, 1 - beta2
    V eps, size, unroot;    // size: lr / (1 - beta1^t); unroot: 1 / sqrt(1 - beta2^t), as divisions are slow
  };

  template <typename V, typename Each>
  static Numbers<V> numbers(const Each& each) {
    return {each([](const SlotStep& s) { return rules::shrink(s.hyper, decoupled); }),
            each([](const SlotStep& s) { return rules::decay(s.hyper, decoupled); }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta1; }),
            each([](const SlotStep& s) { return s.hyper.beta2; }),
            each([](const SlotStep& s) { return 1 - s.hyper.beta2; }),
            each([](const SlotStep& s) { return s.hyper.eps; }),
            each([](const SlotStep& s) { return s.hyper.lr / bias_correction(s.hyper.beta1, s.step); }),
            each([](const SlotStep& s) { return 1 / std::sqrt(bias_correction(s.hyper.beta2, s.step)); })};
  }

  template <int, typename V>
  static HFTA_BOTH void update(V& weight, V gradient, V& first, V& second, const Numbers<V>& k) {
    const V d = fma(k.decay, weight, gradient);
    first = lerp(first, d, k.rest1);
    second = fma(k.rest2 * d, d, second * k.beta2);
    weight = weight * k.shrink + -k.size * first / fma(sqrt(second), k.unroot, k.eps);
  }
};

struct Adam : AdamRule<false> {
  static constexpr OptimizerKind kind = OptimizerKind::kAdam;
  static constexpr const char* name = "adam";
  static constexpr HyperDefault hypers[] = {
      {"lr", 1e-3}, {"weight_decay", 0}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}};
};

struct AdamW : AdamRule<true> {
  static constexpr OptimizerKind kind = OptimizerKind::kAdamW;
  static constexpr const char* name = "adamw";
  static constexpr HyperDefault hypers[] = {
      {"lr", 1e-3}, {"weight_decay", 1e-2}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}};
};

}  // namespace hfta::fusion::rules
