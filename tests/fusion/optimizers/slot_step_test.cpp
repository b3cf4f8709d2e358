#include "fusion/optimizers/slot_step.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

namespace hfta::fusion {
namespace {

constexpr std::size_t kElements = 37;

// One slot's parameters in two groups, with states that are zero.
struct Parameters {
  std::array<std::vector<double>, 2> weights{std::vector<double>(kElements, 0.5), std::vector<double>(kElements, -2)};
  std::array<std::vector<double>, 2> gradients{std::vector<double>(kElements, 3), std::vector<double>(kElements, -1)};
  std::vector<std::vector<double>> states{2 * kMostStates, std::vector<double>(kElements)};

  std::vector<SlotRow<double>> rows() {
    std::vector<SlotRow<double>> all;
    for (std::size_t g = 0; g < weights.size(); ++g) {
      SlotRow<double>& row =
          all.emplace_back(SlotRow<double>{weights[g].data(), gradients[g].data(), {}, kElements, g});
      for (std::size_t s = 0; s < kMostStates; ++s) row.states[s] = states[g * kMostStates + s].data();
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a step by numbers in memory is the step by the slot's numbers") {
  const auto kind = static_cast<OptimizerKind>(GENERATE(range(0, static_cast<int>(OptimizerKind::kLast) + 1)));
  const std::optional<double> clip_norm = GENERATE(values<std::optional<double>>({std::nullopt, 0.25}));
  std::array<SlotStep, 2> slot;
  for (SlotStep& group : slot) {
    group.updates = true;
    group.hyper = default_hyper(kind);
    group.clip_norm = clip_norm;
  }
  slot[0].hyper.lr = 0.1;
  slot[1].hyper.lr = 0.01;
  Parameters by_slot, by_numbers;
  step_slot(kind, std::span<const SlotRow<double>>(by_slot.rows()), slot);
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    const std::array numbers = {numbers_of<Rule, double>(slot[0]), numbers_of<Rule, double>(slot[1])};
    const NumbersView<double> view(kind, std::as_bytes(std::span(numbers)));
    CHECK(view.of<Rule>().size() == 2);
    step_slot(std::span<const SlotRow<double>>(by_numbers.rows()), view, clip_norm);
  });
  CHECK(by_numbers.weights == by_slot.weights);
  CHECK(by_numbers.states == by_slot.states);
  CHECK(by_slot.weights[0].front() != 0.5);
}

}  // namespace hfta::fusion
