#include "gradient_check.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "stages_check.hpp"
#include "tensor_values.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

constexpr SlotRandom kRandom{12345, 7};
constexpr int kMostThreads = 3;

std::vector<int> positions(const Graph& graph) {
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  return index;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) reinterpret_cast<T*>(bytes.data())[i] = static_cast<T>(values[i]);
  return bytes;
}

// A weight's values in its type; T stands for every floating-point type that is computed in.
template <typename T>
std::vector<std::byte> bytes_in(DType dtype, const std::vector<double>& values) {
  if (dtype == DType::kInt64) return bytes_of<std::int64_t>(values);
  if (dtype == DType::kBool) return bytes_of<bool>(values);
  if (dtype == DType::kInt8) return bytes_of<std::int8_t>(values);
  if (dtype == DType::kUInt8) return bytes_of<std::uint8_t>(values);
  if (dtype != DType::kBFloat16) return bytes_of<T>(values);
  std::vector<std::byte> bytes(values.size() * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(values[i]));
    reinterpret_cast<std::uint16_t*>(bytes.data())[i] = static_cast<std::uint16_t>(bits >> 16);
  }
  return bytes;
}

// Takes a gradient that is applied, and spoils it and its weight: nobody may read either again.
template <typename T>
void take_gradient(const Run& run, const CompiledGraph& plan, const WeightGradient& one, std::vector<double>& to) {
  const Tensor& weight = plan.weights[one.weight];
  to.resize(static_cast<std::size_t>(weight.numel()), 0.5);
  const std::int64_t n = one.tensor.numel();
  std::copy_n(run.at<T>(one.tensor), n, to.begin() + one.first);
  std::fill_n(run.at<T>(one.tensor), n, std::numeric_limits<T>::quiet_NaN());
  std::fill_n(run.at<T>(weight) + one.first, n, std::numeric_limits<T>::quiet_NaN());
}

template <typename T = double>
Outcome run_once(const CompiledGraph& plan, Arena& arena, const std::vector<std::vector<double>>& weights,
                 const std::vector<double>& hypers, Team* team = nullptr) {
  const std::span<std::byte*> buffers = arena.bind(plan);
  std::vector<std::vector<std::byte>> held;
  for (std::size_t w = 0; w < weights.size(); ++w) {
    held.push_back(bytes_in<T>(plan.weights[w].dtype, weights[w]));
    buffers[static_cast<std::size_t>(plan.weights[w].buffer)] = held.back().data();
  }
  const Tensor& wanted = plan.inputs.back();
  auto* const target = reinterpret_cast<T*>(buffers[static_cast<std::size_t>(wanted.buffer)]);
  for (std::int64_t i = 0; i < wanted.numel(); ++i) target[i] = static_cast<T>(std::sin(static_cast<double>(i)));
  Outcome out;
  Run run{buffers, hypers, kRandom, arena.kept(), team};
  std::vector<std::vector<double>> applied(weights.size());
  const Apply take = [&](const Run& all, std::span<const WeightGradient> gradients) {
    for (const WeightGradient& one : gradients) take_gradient<T>(all, plan, one, applied[one.weight]);
  };
  run.apply = &take;
  for (const Kernel& kernel : plan.kernels) kernel(run);
  const Tensor &loss = plan.outputs.at(0), &output = plan.outputs.at(1);
  out.loss = values_of<T>(loss, buffers[static_cast<std::size_t>(loss.buffer)]).at(0);
  out.sizes = output.sizes;
  out.output = values_of<T>(output, buffers[static_cast<std::size_t>(output.buffer)]);
  out.gradients.resize(plan.weights.size());
  for (const WeightGradient& one : plan.gradients) {
    out.gradients[one.weight] = values_of<T>(one.tensor, buffers[static_cast<std::size_t>(one.tensor.buffer)]);
  }
  for (std::size_t w = 0; plan.applies && w < weights.size(); ++w) out.gradients[w] = std::move(applied[w]);
  return out;
}

CompiledGraph plan_of(const SmallGraph& small, Recompute recompute = 0, std::int64_t apply_bytes = 0) {
  const Graph graph = with_error(small.graph, DType::kFloat64, small.library);
  return compile({.graph = graph,
                  .index = positions(graph),
                  .dtype = DType::kFloat64,
                  .options = {.library = small.library,
                              .threads = kMostThreads,
                              .recompute = recompute,
                              .apply_bytes = apply_bytes}})
      .plan;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::memcmp(&x, &y, sizeof x) == 0; });
}

void check_same(const Outcome& a, const Outcome& b) {
  CHECK(std::memcmp(&a.loss, &b.loss, sizeof(double)) == 0);
  CHECK(same_bits(a.output, b.output));
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (std::size_t w = 0; w < a.gradients.size(); ++w) {
    CAPTURE(w);
    CHECK(same_bits(a.gradients[w], b.gradients[w]));
  }
}

// One run, checked by others: what is left over from a run must not matter, nor who runs it.
template <typename T>
Outcome checked_run(const CompiledGraph& plan, const SmallGraph& small) {
  Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  const auto lowest = static_cast<std::size_t>(std::find(plan.offsets.begin(), plan.offsets.end(), std::size_t{0}) -
                                               plan.offsets.begin());
  std::byte* const memory = lowest < buffers.size() ? buffers[lowest] : nullptr;  // in a run a buffer may move
  const Outcome first = run_once<T>(plan, arena, small.weights, small.hypers);
  for (int threads = 0; threads <= kMostThreads; ++threads) {
    CAPTURE(threads);
    if (memory != nullptr) std::memset(memory, 0xff, plan.arena_bytes);
    std::optional<Team> team;
    if (threads > 0) team.emplace(threads);
    check_same(first, run_once<T>(plan, arena, small.weights, small.hypers, team ? &*team : nullptr));
  }
  return first;
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool both = std::isnan(found[i]) && std::isnan(wanted[i]);
    if (both || found[i] == wanted[i]) continue;
    if (std::isnan(found[i]) || std::isnan(wanted[i])) worst = std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(wanted[i]));
    worst = std::max(worst, std::abs(found[i] - wanted[i]));
  }
  CHECK(worst <= 1e-12 * std::max(1.0, largest));
}

}  // namespace

Graph with_error(Graph graph, DType dtype, const Library* library) {
  const Dims sizes = compile({.graph = graph,
                              .index = positions(graph),
                              .dtype = dtype,
                              .pass = Pass::kForward,
                              .options = {.library = library}})
                         .plan.outputs.at(0)
                         .sizes;
  const auto value = [&](Shape shape) {
    graph.values.push_back({"error" + std::to_string(graph.values.size()), std::move(shape), dtype});
    return static_cast<ValueId>(graph.values.size()) - 1;
  };
  graph.inputs.push_back(value(sizes));
  const ValueId output = graph.outputs.at(0), loss = value({});
  graph.nodes.push_back({"aten::mse_loss", {output, graph.inputs.back(), std::int64_t{1}}, {loss}, "error", "here"});
  graph.outputs = {loss, output};
  return graph;
}

void check_stages(const SmallGraph& small, const StageCut& cut, const Outcome& whole) {
  CAPTURE(cut.stages, cut.of_weight);
  const Graph graph = with_error(small.graph, DType::kFloat64, small.library);
  std::vector<std::vector<std::byte>> weights;
  for (std::size_t w = 0; w < small.weights.size(); ++w) {
    weights.push_back(bytes_in<double>(graph.weights[w].dtype, small.weights[w]));
  }
  std::vector<double> target(whole.output.size());
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = std::sin(static_cast<double>(i));
  std::vector<double> outputs = {whole.loss};
  outputs.insert(outputs.end(), whole.output.begin(), whole.output.end());
  const StagesInTurn turn(graph, positions(graph), cut, {.library = small.library});
  const StagesInTurn::Outcome found = turn.run(weights, {bytes_of<double>(target)}, small.hypers, kRandom);
  check_close(found.outputs, outputs);
  for (std::size_t w = 0; w < weights.size(); ++w) check_close(found.gradients[w], whole.gradients[w]);
}

namespace {

// Wherever its weights lie.
void check_some_stages(const SmallGraph& small, const Outcome& whole) {
  const Graph graph = with_error(small.graph, DType::kFloat64, small.library);
  for (const int stages : {2, 3}) {
    for (const StageCut& cut : random_cuts(graph, stages, 2)) {
      try {
        check_stages(small, cut, whole);
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Catch::Contains("what two stages of a pipeline read"));
      }
    }
  }
}

}  // namespace

Outcome run_training(const SmallGraph& small) {
  const Outcome kept = checked_run<double>(plan_of(small), small);
  for (const Recompute recompute : {1, 2, 3}) {
    CAPTURE(recompute);
    const CompiledGraph plan = plan_of(small, recompute);
    if (plan.recomputed > 0) check_same(kept, checked_run<double>(plan, small));
  }
  for (const std::int64_t apply_bytes : {1, 4096}) {
    CAPTURE(apply_bytes);
    check_same(kept, checked_run<double>(plan_of(small, apply_bytes == 1 ? 0 : 2, apply_bytes), small));
  }
  check_some_stages(small, kept);
  return kept;
}

std::int64_t shared_kernels(const SmallGraph& small) {
  const CompiledGraph plan = plan_of(small);
  Arena arena;
  Team team(2);
  static_cast<void>(run_once(plan, arena, small.weights, small.hypers, &team));
  return team.shared();
}

std::vector<std::string> algorithms(const SmallGraph& small, const std::string& op) {
  std::vector<std::string> all;
  for (const CompiledGraph::KernelInfo& info : plan_of(small).infos) {
    if (info.op == op && !info.algorithm.empty()) all.push_back(info.algorithm);
  }
  return all;
}

Outcome run_in_float(const SmallGraph& small) {
  SmallGraph single = small;
  for (Value& value : single.graph.values) value.dtype = value.dtype == DType::kFloat64 ? DType::kFloat32 : value.dtype;
  for (Weight& weight : single.graph.weights) {
    weight.dtype = weight.dtype == DType::kFloat64 ? DType::kFloat32 : weight.dtype;
  }
  const Graph graph = with_error(single.graph, DType::kFloat32);
  const std::vector<int> index = positions(graph);
  const TrainingOptions options = {.threads = kMostThreads};
  const CompileRequest request = {.graph = graph, .index = index, .dtype = DType::kFloat32, .options = options};
  return checked_run<float>(compile(request).plan, single);
}

void check_float(const SmallGraph& small, double tolerance) {
  const Outcome exact = run_training(small), found = run_in_float(small);
  const auto compare = [&](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i]));
      worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    CHECK(worst <= tolerance * largest);
  };
  compare(exact.output, found.output);
  for (std::size_t w = 0; w < exact.gradients.size(); ++w) compare(exact.gradients[w], found.gradients[w]);
}

void check_gradients(const SmallGraph& small, double tolerance) {
  const Outcome outcome = run_training(small);
  const CompiledGraph plan = plan_of(small);
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
