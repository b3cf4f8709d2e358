// The one-pass kernels against the rule written in tensor operations.
#include "fusion/eager/optimizer.hpp"

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kGroups = 3;

// One in each group, and another in the first.
std::vector<ParameterSlots> parameters(DType dtype, int slots) {
  std::vector<ParameterSlots> all;
  for (const std::int64_t n : {1, 7, 64, 129}) {
    ParameterSlots p;
    p.weight = counted_normal({slots, n}, dtype, 1 + static_cast<std::uint64_t>(n));
    p.gradient = counted_normal({slots, n}, dtype, 2 + static_cast<std::uint64_t>(n));
    for (at::Tensor& state : p.states) state = at::zeros_like(p.weight);
    p.group = all.size() % kGroups;
    all.push_back(p);
  }
  return all;
}

std::vector<OptimizerKind> kinds() {
  std::vector<OptimizerKind> all;
  for (const OptimizerInfo& info : optimizers()) all.push_back(info.kind);
  return all;
}

// [slots, groups]
std::vector<SlotStep> steps(OptimizerKind kind, std::int64_t step) {
  std::vector<SlotStep> all;
  for (int b = 0; b < 5; ++b) {
    SlotStep s;
    s.updates = b != 3;
    s.step = step + b;  // slots begin at different times
    s.hyper = default_hyper(kind);
    s.hyper.lr = 0.01 * (b + 1);
    s.hyper.weight_decay = b == 1 ? 0.1 : 0;
    s.hyper.momentum = b == 0 ? 0 : 0.8 + 0.03 * b;
    s.hyper.dampening = b == 4 ? 0.1 : 0;
    s.hyper.nesterov = b == 2;
    s.hyper.beta1 = 0.8 + 0.02 * b;
    s.hyper.beta2 = 0.99 + 0.001 * b;
    s.hyper.alpha = 0.9 + 0.01 * b;
    s.hyper.centered = b == 1 || b == 2;
    s.hyper.lr_decay = 0.1 * b;
    s.hyper.initial_accumulator_value = 0.01 * b;
    s.hyper.momentum_decay = 0.01 * b;
    s.hyper.decoupled_weight_decay = b == 1;
    if (b == 2) s.clip_norm = 0.5;
    for (int g = 0; g < kGroups; ++g) {
      all.push_back(s);
      all.back().hyper.lr *= 1 + g;
      if (g == 1) all.back().hyper.momentum = b == 0 ? 0.7 : 0;  // another form of the update
      if (g == 2) all.back().hyper.weight_decay = 0.05;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the kernels follow the reference", "[numeric]") {
  const auto kind = GENERATE(from_range(kinds()));
  INFO(name_of(kind));
  const auto [dtype, tolerance] = GENERATE(table<DType, double>({{DType::kFloat32, 2e-6}, {DType::kFloat64, 1e-13}}));
  std::vector<ParameterSlots> fast = parameters(dtype, 5), slow = parameters(dtype, 5);
  const std::vector<ParameterSlots> initial = parameters(dtype, 5);
  for (std::int64_t t = 1; t <= 5; ++t) {
    step(kind, fast, steps(kind, t));
    step_reference(kind, slow, steps(kind, t));
  }
  for (std::size_t i = 0; i < fast.size(); ++i) {
    CHECK(relative_difference(fast[i].weight, slow[i].weight) < tolerance);
    for (std::size_t s = 0; s < info_of(kind).states.size(); ++s) {
      CHECK(relative_difference(fast[i].states[s], slow[i].states[s]) < tolerance);
    }
    CHECK(fast[i].weight.select(0, 3).equal(initial[i].weight.select(0, 3)));  // the empty slot
    CHECK_FALSE(fast[i].weight.select(0, 0).equal(initial[i].weight.select(0, 0)));
  }
}

TEST_CASE("a slot's first step knows nothing of its neighbours' age") {
  std::vector<ParameterSlots> fast = parameters(DType::kFloat64, 5);
  std::vector<SlotStep> now = steps(OptimizerKind::kAdamW, 1);
  for (std::size_t g = 0; g < kGroups; ++g) {
    now[4 * kGroups + g].step = 1;
    now[g].step = 1000;
  }
  const at::Tensor before = fast[3].weight.select(0, 4).clone();
  step(OptimizerKind::kAdamW, fast, now);
  // Adam's first step is lr in the gradient's direction, whatever the gradient's size.
  const at::Tensor moved = before - fast[3].weight.select(0, 4);
  const at::Tensor direction = fast[3].gradient.select(0, 4).sign() * now[4 * kGroups + fast[3].group].hyper.lr;
  CHECK(relative_difference(moved, direction) < 1e-2);
}

}  // namespace hfta::fusion::testing
