// Every op with a rule on a GPU: what a CPU computes for each slot alone, the same bits whether steps are captured or
// run op by op, and never minding the neighbours.
#include <cmath>
#include <limits>

#include "fusion/eager/program.hpp"
#include "fusion/gpu.hpp"
#include "gpu.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/eager/op_cases.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;
constexpr int kSteps = 5;  // two op by op, a capture, replays

// One for each candidate of the case's rule, and each slot by itself.
std::vector<Lowering> ways(const Model& model) {
  std::vector<Lowering> all = {chunked(1), chunked(kWidth)};
  for (const auto& [family, names] : choosable_families(model.graph)) {
    for (std::size_t i = 1; i < names.size(); ++i) all.push_back(chunked(kWidth, {{family, names[i]}}));
  }
  return all;
}

enum class Graphs { kNone, kCaptured };

// An array on the GPU, and the losses that its steps add to.
class OnGpu {
 public:
  OnGpu(const Model& model, const Lowering& lowering, Graphs graphs, bool beside_broken = false)
      : batch_(on_device(model.batch, first_gpu())),
        array_(model.graph, model.recipe,
               {.lowering = lowering,
                .width = kWidth,
                .study_seed = 5,
                .device = first_gpu(),
                .graphs = graphs == Graphs::kCaptured ? cuda_graphs(first_gpu()).backend : nullptr}) {
    for (int b = 0; b < kWidth; ++b) {
      SlotInit init = trial(model, b);
      if (beside_broken && b != 1) init.hyper.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
      array_.admit(b, init);
    }
  }

  std::vector<double> step() {
    std::vector<double> losses;
    for (int k = 0; k < array_.chunks(); ++k) {
      at::Tensor sums = array_.fresh_losses(k).front();
      array_.step(k, batch_, rates_of(array_, k), sums);
      const at::Tensor mean = (sums[0] / sums[1]).cpu();
      losses.insert(losses.end(), mean.data_ptr<double>(), mean.data_ptr<double>() + mean.numel());
    }
    return losses;
  }

  [[nodiscard]] Array& array() { return array_; }
  [[nodiscard]] at::Tensor gradient(std::size_t weight, int slot) const {
    const bool together = array_.chunks() == 1;
    const at::Tensor all = array_.gradients(together ? 0 : slot)[weight].second;
    return all.defined() ? all.select(0, together ? slot : 0).cpu() : all;
  }

 private:
  Batch batch_;
  Array array_;
};

double tolerance_of(const Model& model, double usual) {
  struct Exception {
    const char* op;
    double float64, float32;
  };
  // LibTorch's kernels for GPUs have constants of the first two in float32, whatever the numbers' type. The others
  // divide by the spread of a few numbers, which some cases have close together.
  for (const auto& [op, float64, float32] : {Exception{"aten::hardsigmoid", 1e-6, 1e-4},
                                             {"aten::hardswish", 1e-6, 1e-4},
                                             {"aten::layer_norm", 1e-9, 2e-3},
                                             {"aten::group_norm", 1e-9, 2e-3},
                                             {"aten::batch_norm", 1e-9, 2e-3},
                                             {"aten::instance_norm", 1e-9, 2e-3}}) {
    if (model.name.starts_with(op)) return model.recipe.dtype == DType::kFloat64 ? float64 : float32;
  }
  return usual;
}

bool near(double found, double expected, double tolerance) {
  return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Losses of two steps and gradients of the first.
void compare_with_cpu(const Model& model, const Lowering& lowering, double tolerance) {
  Array host(model.graph, model.recipe, {.lowering = chunked(1), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) host.admit(b, trial(model, b));
  OnGpu device(model, lowering, Graphs::kNone);
  host.keep_gradients();
  device.array().keep_gradients();
  for (int step = 0; step < 2; ++step) {
    const std::vector<double> expected = step_all(host, model.batch), found = device.step();
    for (int b = 0; b < kWidth; ++b) {
      CAPTURE(step, b);
      const auto at = static_cast<std::size_t>(b);
      CAPTURE(found[at], expected[at]);
      CHECK(near(found[at], expected[at], tolerance));
      const auto gradients = host.gradients(b);
      for (std::size_t w = 0; step == 0 && w < gradients.size(); ++w) {
        CAPTURE(gradients[w].first);
        const at::Tensor here = gradients[w].second, there = device.gradient(w, b);
        REQUIRE(here.defined() == there.defined());
        if (!here.defined()) continue;
        const at::Tensor one = here.select(0, 0);
        CHECK((there - one).norm().item<double>() <= tolerance * std::max(1.0, one.norm().item<double>()));
      }
    }
  }
}

void compare_captured(const Model& model, const Lowering& lowering) {
  OnGpu eager(model, lowering, Graphs::kNone), captured(model, lowering, Graphs::kCaptured);
  for (int step = 0; step < kSteps; ++step) CHECK(captured.step() == eager.step());
  for (int b = 0; b < kWidth; ++b) CHECK(captured.array().extract(b) == eager.array().extract(b));
  const StepCounts counts = captured.array().step_counts();
  INFO(counts.why_eager);
  const bool reads_data = counts.why_eager.find("gives the host a number of the data") != std::string::npos;
  CHECK(counts.replayed == (reads_data ? 0 : (kSteps - 2) * captured.array().chunks()));
}

void compare_beside_broken(const Model& model, const Lowering& lowering) {
  std::vector<StateBytes> states;
  for (const bool broken : {false, true}) {
    OnGpu array(model, lowering, Graphs::kCaptured, broken);
    for (int step = 0; step < kSteps; ++step) array.step();
    states.push_back(array.array().extract(1));
  }
  CHECK(states[0] == states[1]);
}

// Calls check(model, way) for every case and every way to run it.
template <typename Check>
void for_each_case(DType floats, const Check& check) {
  for (const OpCase& op_case : op_cases()) {
    const Model model = model_of(op_case, floats);
    for (const Lowering& lowering : ways(model)) {
      INFO(model.name << ", " << lowering.to_text());
      try {
        check(model, lowering);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

}  // namespace

TEST_CASE("every op with a rule computes on a GPU what it computes on a CPU", "[gpu]") {
  if (!gpu_is_there()) return;
  for_each_case(DType::kFloat64, [](const Model& model, const Lowering& way) {
    compare_with_cpu(model, way, tolerance_of(model, 1e-9));
  });
}

TEST_CASE("every op with a rule computes in float32 on a GPU what it computes on a CPU", "[gpu]") {
  if (!gpu_is_there()) return;
  for_each_case(DType::kFloat32, [](const Model& model, const Lowering& way) {
    compare_with_cpu(model, way, tolerance_of(model, 1e-4));
  });
}

TEST_CASE("every op with a rule gives the same bits in captured steps", "[gpu]") {
  if (!gpu_is_there()) return;
  for_each_case(DType::kFloat32, [](const Model& model, const Lowering& way) { compare_captured(model, way); });
}

TEST_CASE("every op with a rule minds no broken neighbour on a GPU", "[gpu]") {
  if (!gpu_is_there()) return;
  for_each_case(DType::kFloat32, [](const Model& model, const Lowering& way) { compare_beside_broken(model, way); });
}

}  // namespace hfta::fusion::testing
