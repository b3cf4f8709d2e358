#include "fusion/eager/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fusion/eager/slot_tensor.hpp"
#include "fusion/optimizers/slot_step.hpp"

namespace hfta::fusion {
namespace {

// Each slot's numbers for one group of parameters. `all` has slots * groups of them, row-major.
class GroupSteps {
 public:
  GroupSteps(std::span<const SlotStep> all, const at::Tensor& weight, std::size_t group)
      : all_(all), groups_(all.size() / static_cast<std::size_t>(weight.size(0))), group_(group) {}
  [[nodiscard]] std::size_t size() const { return all_.size() / groups_; }
  [[nodiscard]] const SlotStep& operator[](std::size_t slot) const { return all_[slot * groups_ + group_]; }
  /// The slot's numbers of all groups.
  [[nodiscard]] std::span<const SlotStep> of(std::size_t slot) const { return all_.subspan(slot * groups_, groups_); }

 private:
  std::span<const SlotStep> all_;
  std::size_t groups_, group_;
};

// get(b) for every slot b as a tensor [c, 1, ...] that broadcasts against `like`.
template <typename Get>
at::Tensor over_slots(std::size_t slots, const at::Tensor& like, const Get& get) {
  const at::Tensor host = at::empty({static_cast<std::int64_t>(slots)}, at::kDouble);
  for (std::size_t b = 0; b < slots; ++b) host.data_ptr<double>()[b] = get(b);
  return by_slot(host.to(like.options()), like);
}

// Factor on each slot's gradient, 1 where it is not clipped.
std::vector<double> clip_factors(std::span<const ParameterSlots> parameters, const GroupSteps& slots) {
  std::vector<double> factors(slots.size(), 1.0);
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].updates || !slots[b].clip_norm) continue;
    double squares = 0;
    for (const ParameterSlots& p : parameters) {
      const double norm = p.gradient.select(0, static_cast<std::int64_t>(b)).to(at::kDouble).norm().item<double>();
      squares += norm * norm;
    }
    factors[b] = clip_factor(*slots[b].clip_norm, squares);
  }
  return factors;
}

// The slots whose update has that form, which keep nothing of what they had.
template <typename Rule, int form>
at::Tensor slots_of_form(const GroupSteps& slots, const at::Tensor& like) {
  const auto has = [&](std::size_t b) {
    const bool right = rules::Forms<Rule>::template of<double>(numbers_of<Rule, double>(slots[b])) == form;
    return slots[b].updates && right ? 1.0 : 0.0;
  };
  return over_slots(slots.size(), like, has).gt(0);
}

// One form of the update of all slots, of which those that have it take the result.
template <typename Rule, int form>
void update_form(ParameterSlots& p, const at::Tensor& gradient, const GroupSteps& slots) {
  const at::Tensor mine = slots_of_form<Rule, form>(slots, p.weight);
  const auto numbers = Rule::template numbers<SlotTensor>([&](const auto& f) {
    return SlotTensor(over_slots(slots.size(), p.weight, [&](std::size_t b) { return f(slots[b]); }));
  });
  SlotTensor weight(p.weight);
  std::array<SlotTensor, kMostStates> state = {SlotTensor(p.states[0]), SlotTensor(p.states[1]),
                                               SlotTensor(p.states[2])};
  update_element<Rule, form>(weight, SlotTensor(gradient), &state[0], &state[1], &state[2], 0, numbers);
  p.weight.copy_(at::where(mine, weight.value, p.weight));
  for (std::size_t s = 0; s < rules::kStates<Rule>; ++s) {
    p.states[s].copy_(at::where(mine, state[s].value, p.states[s]));
  }
}

template <typename Rule, int... form>
void update_forms(ParameterSlots& p, const at::Tensor& gradient, const GroupSteps& slots,
                  std::integer_sequence<int, form...>) {
  (update_form<Rule, form>(p, gradient, slots), ...);
}

template <typename T>
void step_on_cpu(OptimizerKind kind, std::span<ParameterSlots> parameters, const GroupSteps& slots) {
  std::vector<SlotRow<T>> rows(parameters.size());
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (!slots[b].updates) continue;
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = row_of<T>(parameters[k], b);
    step_slot(kind, std::span<const SlotRow<T>>(rows), slots.of(b));
  }
}

}  // namespace

void clamp_weights(std::span<const ParameterSlots> parameters, const at::Tensor& limits) {
  const at::NoGradGuard no_gradients;
  for (const ParameterSlots& p : parameters) {
    const at::Tensor most = by_slot(limits.to(p.weight.scalar_type()), p.weight);
    // Other chunks' rows are of the same tensor: its version, which their backward looks at, stays as it is.
    p.weight.variable_data().clamp_(-most, most);
  }
}

void step_reference(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots) {
  if (parameters.empty()) return;
  const at::Tensor& first = parameters.front().weight;
  const std::vector<double> factors = clip_factors(parameters, GroupSteps(slots, first, 0));
  const bool clipped = std::any_of(factors.begin(), factors.end(), [](double f) { return f != 1; });
  const auto factor = [&](std::size_t b) { return factors[b]; };
  for (ParameterSlots& p : parameters) {
    const GroupSteps numbers(slots, first, p.group);
    const at::Tensor gradient = clipped ? p.gradient * over_slots(factors.size(), p.weight, factor) : p.gradient;
    with_rule(kind, [&](auto rule) {
      using Rule = decltype(rule);
      update_forms<Rule>(p, gradient, numbers, std::make_integer_sequence<int, rules::Forms<Rule>::count>());
    });
  }
  const GroupSteps numbers(slots, first, 0);
  std::vector<double> limits;
  for (std::size_t b = 0; b < numbers.size(); ++b) limits.push_back(weight_limit(numbers[b]));
  if (std::all_of(limits.begin(), limits.end(), [](double limit) { return std::isinf(limit); })) return;
  clamp_weights(parameters, at::tensor(limits, at::kDouble).to(first.device()));
}

void step(OptimizerKind kind, std::span<ParameterSlots> parameters, std::span<const SlotStep> slots) {
  if (parameters.empty()) return;
  const at::Tensor& weight = parameters.front().weight;
  if (!weight.is_cpu()) return step_reference(kind, parameters, slots);
  if (weight.scalar_type() == at::kDouble) return step_on_cpu<double>(kind, parameters, {slots, weight, 0});
  step_on_cpu<float>(kind, parameters, {slots, weight, 0});
}

}  // namespace hfta::fusion
