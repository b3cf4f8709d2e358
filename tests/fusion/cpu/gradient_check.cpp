#include "gradient_check.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hfta::fusion::cpu::testing {
namespace {

constexpr SlotRandom kRandom{12345, 7};

std::vector<int> positions(const Graph& graph) {
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  return index;
}

// Elements in row-major order of the tensor.
std::vector<double> read(const Tensor& t, const std::byte* buffer) {
  std::vector<double> out;
  const auto* const base = reinterpret_cast<const double*>(buffer) + t.offset;
  Dims at(t.sizes.size(), 0);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * t.strides[d];
    out.push_back(base[place]);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == t.sizes[d];) at[d] = 0;
  }
  return out;
}

Outcome run_once(const Plan& plan, Arena& arena, std::vector<std::vector<double>> weights,
                 const std::vector<double>& hypers) {
  const std::span<std::byte*> buffers = arena.bind(plan);
  for (std::size_t w = 0; w < weights.size(); ++w) {
    buffers[static_cast<std::size_t>(plan.weights[w].buffer)] = reinterpret_cast<std::byte*>(weights[w].data());
  }
  auto* const target = reinterpret_cast<double*>(buffers[static_cast<std::size_t>(plan.target.buffer)]);
  for (std::int64_t i = 0; i < plan.target.numel(); ++i) target[i] = std::sin(static_cast<double>(i));
  Outcome out;
  const Run run{buffers, hypers, kRandom, 0, &out.loss};
  for (const Kernel& kernel : plan.kernels) kernel(run);
  out.sizes = plan.output.sizes;
  out.output = read(plan.output, buffers[static_cast<std::size_t>(plan.output.buffer)]);
  for (const Tensor& gradient : plan.gradients) {
    out.gradients.emplace_back();
    if (gradient.defined()) out.gradients.back() = read(gradient, buffers[static_cast<std::size_t>(gradient.buffer)]);
  }
  return out;
}

Plan plan_of(const SmallGraph& small) {
  return compile_training(small.graph, positions(small.graph), Loss::kMse, DType::kFloat64, 1);
}

}  // namespace

Outcome run_training(const SmallGraph& small) {
  const Plan plan = plan_of(small);
  Arena arena;
  const Outcome first = run_once(plan, arena, small.weights, small.hypers);
  const std::span<std::byte*> buffers = arena.bind(plan);
  for (std::size_t b = 0; b < plan.offsets.size(); ++b) {  // what is left over from a run must not matter
    if (plan.offsets[b] == 0) std::memset(buffers[b], 0xff, plan.arena_bytes);
  }
  const Outcome second = run_once(plan, arena, small.weights, small.hypers);
  CHECK(std::memcmp(&first.loss, &second.loss, sizeof(double)) == 0);
  CHECK(first.output == second.output);
  CHECK(first.gradients == second.gradients);
  return first;
}

void check_gradients(const SmallGraph& small, double tolerance) {
  const Outcome outcome = run_training(small);
  const Plan plan = plan_of(small);
  Arena arena;
  for (std::size_t w = 0; w < small.weights.size(); ++w) {
    if (!small.graph.weights[w].trained) continue;
    CAPTURE(small.graph.weights[w].name);
    REQUIRE(outcome.gradients[w].size() == small.weights[w].size());
    const std::size_t stride = std::max<std::size_t>(1, small.weights[w].size() / 40);
    for (std::size_t i = 0; i < small.weights[w].size(); i += stride) {
      CAPTURE(i);
      constexpr double kStep = 1e-5;
      std::vector<std::vector<double>> moved = small.weights;
      moved[w][i] += kStep;
      const double above = run_once(plan, arena, moved, small.hypers).loss;
      moved[w][i] -= 2 * kStep;
      const double below = run_once(plan, arena, moved, small.hypers).loss;
      const double numeric = (above - below) / (2 * kStep);
      CHECK(std::abs(outcome.gradients[w][i] - numeric) <= tolerance * std::max(1.0, std::abs(numeric)));
    }
  }
}

}  // namespace hfta::fusion::cpu::testing
