#include "profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/random.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"
#include "fusion/optimizers/shared_step.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/phases.hpp"
#include "fusion/simd/denormals.hpp"
#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion {
namespace {

using Clock = std::chrono::steady_clock;
using Info = cpu::CompiledGraph::KernelInfo;

double microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Independent sums of fused multiply-adds in registers; returns the operations.
template <typename R>
inline __attribute__((always_inline)) double multiply_and_add(R, float& sink) {
  using Part = typename simd::Lanes<float, R::kBytes>::Part;
  constexpr std::size_t kChains = 12;
  constexpr int kRounds = 20000;
  Part sums[kChains];  // that differ, or they would be computed as one
  for (std::size_t c = 0; c < kChains; ++c) sums[c] = Part{} + (static_cast<float>(c) + sink);
  const Part a = Part{} + 0.999F, b = Part{} + (0.001F + sink);
  for (int i = 0; i < kRounds; ++i) {
    simd::for_each_index<kChains>([&](auto c) __attribute__((always_inline)) { sums[c] = sums[c] * a + b; });
  }
  Part total = {};
  simd::for_each_index<kChains>([&](auto c) __attribute__((always_inline)) { total += sums[c]; });
  sink = total[0] * 0.0F;
  return 2.0 * kChains * kRounds * R::kBytes / sizeof(float);
}

// Operations a microsecond at most, of one core.
double most_operations() {
  double most = 0;
  float sink = 0;
  for (int r = 0; r < 200; ++r) {
    const auto begin = Clock::now();
    const double operations = simd::multiversion([&](auto registers) { return multiply_and_add(registers, sink); });
    most = std::max(most, operations / microseconds(begin));
  }
  return most;
}

// Of a product's kernels; 0 of others.
double operations(const Info& info) {
  const auto elements = [&](std::size_t i) { return static_cast<double>(cpu::product(info.sizes.at(i))); };
  if (info.op.find("conv") != std::string::npos && info.sizes.size() >= 4) {
    // x, weight, bias or none, y, scratch; backward x, weight, y, its gradient, those of bias, weight, x, scratch.
    const std::size_t y = info.backward ? 2 : info.sizes.size() - 2;
    const double once = 2 * elements(y) * elements(1) / static_cast<double>(info.sizes[y].at(1));
    return info.backward ? 2 * once : once;
  }
  const bool product = info.op == "aten::linear" || info.op.find("mm") != std::string::npos ||
                       info.op.find("matmul") != std::string::npos;
  if (!product || info.sizes.size() < 3) return 0;
  const std::size_t y = info.backward ? 2 : info.sizes.size() - 2;
  if (info.backward && info.sizes.size() < 4) return 0;  // the bias's sums
  return 2 * std::sqrt(elements(0) * elements(1) * elements(y));
}

// The plan with memory of its own: random weights, the first batch's samples.
class Step {
 public:
  Step(const SpecializedGraph& reading, const Recipe& recipe, const DeviceData& data, std::int64_t batch, int threads)
      : library_(torch_library()),
        plan_(
            cpu::compile({.graph = reading.graph,
                          .index = reading.index,
                          .dtype = recipe.dtype,
                          .n = batch,
                          .options = {.library = library_.get(), .threads = threads, .apply_bytes = cpu::kApplyBytes}})
                .plan),
        team_(threads),
        kind_(recipe.optimizer) {
    const std::span<std::byte*> buffers = arena_.bind(plan_);
    for (std::size_t i = 0; i < plan_.weights.size(); ++i) {
      const cpu::Tensor& weight = plan_.weights[i];
      memory_.emplace_back(static_cast<std::size_t>(weight.numel() * size_of(weight.dtype) + 64));
      buffers[static_cast<std::size_t>(weight.buffer)] = memory_.back().data();
      if (weight.dtype != DType::kFloat32) continue;
      CountedRandom random(1, Stream::kDropout, i);
      auto* const values = reinterpret_cast<float*>(memory_.back().data());
      const bool trained = reading.graph.weights[i].trained;
      for (std::int64_t e = 0; e < weight.numel(); ++e) {
        values[e] = trained ? static_cast<float>(random.uniform() - 0.5) / 8 : 1.0F;
      }
    }
    states_.resize(plan_.weights.size());
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      const SampleArray& from = i < data.inputs.size() ? data.inputs[i] : data.target;
      from.copy(nullptr, 0, batch, buffers[static_cast<std::size_t>(plan_.inputs[i].buffer)]);
    }
    slot_.updates = true;
    slot_.hyper = default_hyper(kind_);
    slot_.hyper.lr = 1e-5;
    for (const Hyper& hyper : reading.graph.hypers) hypers_.push_back(hyper.value);
  }

  [[nodiscard]] const std::vector<Info>& kernels() const { return plan_.infos; }

  /// Each kernel's time.
  void run(std::vector<std::vector<double>>& times) {
    const cpu::Apply optimize = [this](const cpu::Run& all, std::span<const cpu::WeightGradient> gradients) {
      step(all, gradients);
    };
    cpu::Run run{arena_.bind(plan_), hypers_, {}, arena_.kept(), &team_};
    run.apply = &optimize;
    auto last = Clock::now();
    for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
      plan_.kernels[k](run);
      const auto now = Clock::now();
      times[k].push_back(std::chrono::duration<double, std::micro>(now - last).count());
      last = now;
    }
    ++slot_.step;
  }

 private:
  void step(const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) {
    rows_.clear();
    for (const cpu::WeightGradient& one : gradients) {
      const cpu::Tensor& weight = plan_.weights[one.weight];
      SlotRow<float>& row = rows_.emplace_back(SlotRow<float>{run.at<float>(weight) + one.first,
                                                              run.at<float>(one.tensor),
                                                              {},
                                                              static_cast<std::size_t>(one.tensor.numel())});
      std::vector<std::vector<float>>& states = states_[one.weight];
      states.resize(info_of(kind_).states.size());
      for (std::size_t s = 0; s < states.size(); ++s) {
        states[s].resize(static_cast<std::size_t>(weight.numel()), 0.0F);
        row.states[s] = states[s].data() + one.first;
      }
    }
    share_step(&team_, kind_, std::span<const SlotRow<float>>(rows_), std::span(&slot_, 1));
  }

  std::unique_ptr<const cpu::Library> library_;
  cpu::CompiledGraph plan_;
  Team team_;
  OptimizerKind kind_;
  cpu::Arena arena_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::vector<std::vector<float>>> states_;  // by weight
  std::vector<SlotRow<float>> rows_;
  std::vector<double> hypers_;
  SlotStep slot_;
};

std::string shapes(const Info& info) {
  std::string text;
  for (const cpu::Dims& sizes : info.sizes) text += fmt::format(" {}", fmt::join(sizes, "x"));
  return text;
}

}  // namespace

std::string profile(const Graph& graph, const Recipe& recipe, const DeviceData& data, std::int64_t batch, int threads,
                    int repeats) {
  const simd::FlushDenormals flush;
  const Graph complete = with_complete_arguments(graph_of_phase(graph, recipe, 0));
  Step step(specialized(complete, Purpose::kTraining), recipe, data, batch, threads);
  std::vector<std::vector<double>> times(step.kernels().size());
  for (int r = 0; r < repeats; ++r) step.run(times);
  std::vector<double> medians;
  double total = 0;
  for (std::vector<double>& of : times) total += medians.emplace_back(median(of));
  const double most = most_operations();
  std::string text = fmt::format("LIBXSMM {}, {:.1f} GFLOP/s at most, a step {:.1f} us\n{:>10} {:>6} {:>7} {:>7}  {}\n",
                                 cpu::xsmm_target(), most / 1e3, total, "us", "share", "of most", "GB/s", "kernel");
  for (std::size_t k = 0; k < medians.size(); ++k) {
    const Info& info = step.kernels()[k];
    const double work = operations(info);
    const std::string rate = work > 0 ? fmt::format("{:6.0f}%", 100 * work / medians[k] / most) : "";
    text += fmt::format("{:10.2f} {:5.1f}% {:>7} {:7.1f}  {}{}{}{}\n", medians[k], 100 * medians[k] / total, rate,
                        static_cast<double>(info.bytes) / medians[k] / 1e3, info.op.empty() ? "-" : info.op,
                        info.backward ? "'" : "", info.algorithm.empty() ? "" : fmt::format(" ({})", info.algorithm),
                        shapes(info));
  }
  return text;
}

}  // namespace hfta::fusion
