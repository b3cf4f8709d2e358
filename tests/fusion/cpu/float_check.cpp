#include "float_check.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

namespace hfta::fusion::cpu::testing {
namespace {

std::vector<double> read(const Tensor& t, const std::byte* buffer) {
  std::vector<double> out;
  const auto* const base = reinterpret_cast<const float*>(buffer) + t.offset;
  Dims at(t.sizes.size(), 0);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * t.strides[d];
    out.push_back(static_cast<double>(base[place]));
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == t.sizes[d];) at[d] = 0;
  }
  return out;
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(found.size() == wanted.size());
  double largest = 1e-3, off = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    off = std::max(off, std::abs(found[i] - wanted[i]));
  }
  CHECK(off <= tolerance * largest);
}

}  // namespace

void check_float(const SmallGraph& small, double tolerance) {
  const Outcome wanted = run_training(small);
  Graph graph = small.graph;
  for (Value& value : graph.values) value.dtype = DType::kFloat32;
  for (Weight& weight : graph.weights) weight.dtype = DType::kFloat32;
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const Plan plan = compile_training(graph, index, Loss::kMse, DType::kFloat32, 1);
  Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  std::vector<std::vector<float>> weights;
  for (const auto& values : small.weights) weights.emplace_back(values.begin(), values.end());
  for (std::size_t w = 0; w < weights.size(); ++w) {
    buffers[static_cast<std::size_t>(plan.weights[w].buffer)] = reinterpret_cast<std::byte*>(weights[w].data());
  }
  auto* const target = reinterpret_cast<float*>(buffers[static_cast<std::size_t>(plan.target.buffer)]);
  for (std::int64_t i = 0; i < plan.target.numel(); ++i)
    target[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  double loss = 0;
  const Run run{buffers, small.hypers, {12345, 7}, 0, &loss};
  for (const Kernel& kernel : plan.kernels) kernel(run);
  CHECK(loss == Approx(wanted.loss).epsilon(tolerance));
  check_close(read(plan.output, buffers[static_cast<std::size_t>(plan.output.buffer)]), wanted.output, tolerance);
  for (std::size_t w = 0; w < weights.size(); ++w) {
    if (!plan.gradients[w].defined()) continue;
    CAPTURE(graph.weights[w].name);
    check_close(read(plan.gradients[w], buffers[static_cast<std::size_t>(plan.gradients[w].buffer)]),
                wanted.gradients[w], tolerance);
  }
}

}  // namespace hfta::fusion::cpu::testing
