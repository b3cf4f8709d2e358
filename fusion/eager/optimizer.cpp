#include "fusion/eager/optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "fusion/optimizers/slot_step.hpp"

namespace hfta::fusion {
namespace {

// f(slot) for every slot as a tensor [c, 1, ...] that broadcasts against `like`. `keep`: for empty slots.
template <typename Get>
at::Tensor over_slots(std::span<const SlotStep> slots, const at::Tensor& like, Get get, double keep = 0) {
  const at::Tensor host = at::empty({static_cast<std::int64_t>(slots.size())}, at::kDouble);
  for (std::size_t b = 0; b < slots.size(); ++b) host.data_ptr<double>()[b] = slots[b].occupied ? get(slots[b]) : keep;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = like.size(0);
  return host.to(like.options()).view(shape);
}

// 1 for every slot that is empty, over `like`'s dimensions: such a slot keeps what it has.
at::Tensor empty_slots(std::span<const SlotStep> slots, const at::Tensor& like) {
  const auto occupied = [](const SlotStep&) { return 0.0; };
  return over_slots(slots, like, occupied, 1.0).gt(0);
}

// Factor on each slot's gradient, 1 where it is not clipped.
std::vector<double> clip_factors(std::span<const ParameterSlots> parameters, std::span<const SlotStep> slots) {
  std::vector<double> factors(slots.size(), 1.0);
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].occupied || !slots[b].clip_norm) continue;
    double squares = 0;
    for (const ParameterSlots& p : parameters) {
      const double norm = p.gradient.select(0, static_cast<std::int64_t>(b)).to(at::kDouble).norm().item<double>();
      squares += norm * norm;
    }
    factors[b] = clip_factor(*slots[b].clip_norm, squares);
  }
  return factors;
}

void sgd_reference(ParameterSlots& p, const at::Tensor& gradient, std::span<const SlotStep> slots) {
  const auto get = [&](auto f) { return over_slots(slots, p.weight, f); };
  const at::Tensor mu = get([](const SlotStep& s) { return s.hyper.momentum; });
  const at::Tensor damp = get([](const SlotStep& s) { return 1 - s.hyper.dampening; });
  const at::Tensor nesterov = get([](const SlotStep& s) { return s.hyper.nesterov ? 1.0 : 0.0; });
  const at::Tensor begins = get([](const SlotStep& s) { return s.step == 1 ? 1.0 : 0.0; });
  const at::Tensor lr = get([](const SlotStep& s) { return s.hyper.lr; });
  const at::Tensor decay = get([](const SlotStep& s) { return s.hyper.weight_decay; });
  const at::Tensor g = gradient + decay * p.weight;
  const at::Tensor buffer = at::where(begins.gt(0), g, mu * p.first + damp * g);
  const at::Tensor moved = at::where(nesterov.gt(0), g + mu * buffer, buffer);
  const at::Tensor empty = empty_slots(slots, p.weight);
  const at::Tensor has_momentum = mu.ne(0);
  p.first.copy_(at::where(empty.logical_or(has_momentum.logical_not()), p.first, buffer));
  p.weight.copy_(at::where(empty, p.weight, p.weight - lr * at::where(has_momentum, moved, g)));
}

void adam_reference(ParameterSlots& p, const at::Tensor& gradient, std::span<const SlotStep> slots, bool decoupled) {
  const auto get = [&](auto f) { return over_slots(slots, p.weight, f); };
  const at::Tensor lr = get([](const SlotStep& s) { return s.hyper.lr; });
  const at::Tensor decay = get([](const SlotStep& s) { return s.hyper.weight_decay; });
  const at::Tensor b1 = get([](const SlotStep& s) { return 1 - s.hyper.beta1; });
  const at::Tensor b2 = get([](const SlotStep& s) { return s.hyper.beta2; });
  const at::Tensor b2_rest = get([](const SlotStep& s) { return 1 - s.hyper.beta2; });
  const at::Tensor eps = get([](const SlotStep& s) { return s.hyper.eps; });
  const at::Tensor size = get([](const SlotStep& s) { return adam_step_size(s); });
  const at::Tensor root = over_slots(
      slots, p.weight, [](const SlotStep& s) { return adam_root_correction(s); }, 1.0);
  const at::Tensor empty = empty_slots(slots, p.weight);
  const at::Tensor weight = decoupled ? p.weight * (1 - lr * decay) : p.weight;
  const at::Tensor g = decoupled ? gradient : gradient + decay * p.weight;
  const at::Tensor first = p.first + b1 * (g - p.first);
  const at::Tensor second = p.second * b2 + b2_rest * g * g;
  const at::Tensor updated = weight - size * (first / (second.sqrt() / root + eps));
  p.first.copy_(at::where(empty, p.first, first));
  p.second.copy_(at::where(empty, p.second, second));
  p.weight.copy_(at::where(empty, p.weight, updated));
}

template <typename T>
void step_on_cpu(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots) {
  std::vector<SlotRow<T>> rows(parameters.size());
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].occupied) continue;
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = row_of<T>(parameters[k], b);
    step_slot(kind, std::span<const SlotRow<T>>(rows), slots[b]);
  }
}

}  // namespace

void step_reference(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots) {
  const std::vector<double> factors = clip_factors(parameters, slots);
  const bool clipped = std::any_of(factors.begin(), factors.end(), [](double f) { return f != 1; });
  for (ParameterSlots& p : parameters) {
    at::Tensor gradient = p.gradient;
    if (clipped) {
      std::size_t b = 0;
      gradient = gradient * over_slots(
                                slots, p.weight,
                                [&](const SlotStep& s) {
                                  b = static_cast<std::size_t>(&s - slots.data());
                                  return factors[b];
                                },
                                1.0);
    }
    if (kind == OptimizerKind::kSgd) {
      sgd_reference(p, gradient, slots);
    } else {
      adam_reference(p, gradient, slots, kind == OptimizerKind::kAdamW);
    }
  }
}

void step(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots) {
  if (parameters.empty()) return;
  const at::Tensor& weight = parameters.front().weight;
  if (!weight.is_cpu()) return step_reference(kind, parameters, slots);
  if (weight.scalar_type() == at::kDouble) return step_on_cpu<double>(kind, parameters, slots);
  step_on_cpu<float>(kind, parameters, slots);
}

}  // namespace hfta::fusion
