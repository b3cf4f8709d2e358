// The CUDA kernels against the CPU's loops. Without kernels in the build their absence is told; without a GPU the
// comparisons end as passed with a warning, and `[gpu]` names them for machines that have one.
#include "fusion/gpu.hpp"

#include <ATen/Context.h>

#include "fusion/capture/step_kernels.hpp"
#include "fusion/cuda/slot_kernels.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

bool gpu_is_there() {
  if (cuda::built() && cuda_devices() > 0) return true;
  WARN("no GPU, or a build without kernels: nothing was compared");
  return false;
}

// The same steps on both; losses within a relative tolerance.
void compare_steps(Array& host, Array& device, const Batch& batch, int steps, double tolerance) {
  Batch there = batch;
  for (SampleArray& input : there.parts[0].inputs) input = input.stored().cuda();
  there.parts[0].target = there.parts[0].target.stored().cuda();
  for (int s = 0; s < steps; ++s) {
    const std::vector<double> expected = step_all(host, batch);
    for (int k = 0; k < device.chunks(); ++k) {
      at::Tensor sums = device.fresh_losses(k);
      device.step(k, there, rates_of(device, k), sums);
      const at::Tensor loss = (sums / static_cast<double>(there.parts[0].size())).cpu();
      for (std::int64_t i = 0; i < loss.numel(); ++i) {
        const auto slot = static_cast<std::size_t>(device.first_slot(k) + i);
        CHECK(loss.data_ptr<double>()[i] == Approx(expected[slot]).epsilon(tolerance));
      }
    }
  }
}

}  // namespace

TEST_CASE("a build without kernels says so") {
  if (cuda::built()) return;
  CHECK_THROWS_WITH(cuda::dropout_masks(static_cast<float*>(nullptr), {}, {}, nullptr),
                    Catch::Contains("HFTA_CUDA=ON"));
}

TEST_CASE("a GPU has kernels where the build has them") {
  CHECK(has_step_kernels(at::kCPU));
  CHECK(has_step_kernels(at::Device(at::kCUDA, 0)) == cuda::built());
}

TEST_CASE("counted numbers on a GPU are the host's", "[gpu]") {
  if (!gpu_is_there()) return;
  const at::Device gpu(at::kCUDA, 0);
  StepParams host(OptimizerKind::kSgd, at::kFloat, 3, 1, at::kCPU), device(OptimizerKind::kSgd, at::kFloat, 3, 1, gpu);
  const std::vector<double> rates = {0.0, 0.3, 1.0};
  std::vector<SlotRun> slots(3);
  for (std::size_t b = 0; b < 3; ++b) slots[b] = {{}, {2 * b + 1, std::uint64_t{1} << (20 * b)}, {&rates[b], 1}, 0};
  host.set(slots, 5);
  device.set(slots, 5);
  const StepKernels here(host, nullptr), there(device, nullptr);
  for (const auto type : {at::kFloat, at::kDouble}) {
    const at::Tensor expected = at::empty({3, 7, 11}, at::TensorOptions().dtype(type));
    const at::Tensor found = at::empty({3, 7, 11}, at::TensorOptions().dtype(type).device(gpu));
    here.fill_masks(expected, SlotNumbers(host.hyper(0)), 4);
    there.fill_masks(found, SlotNumbers(device.hyper(0)), 4);
    CHECK(found.cpu().equal(expected));
    here.fill_masks(expected, std::vector<double>(3, 0.6), 5);
    there.fill_masks(found, std::vector<double>(3, 0.6), 5);
    CHECK(found.cpu().equal(expected));
    here.fill_uniforms(expected, 6);
    there.fill_uniforms(found, 6);
    CHECK(found.cpu().equal(expected));
    here.fill_normals(expected, 7);
    there.fill_normals(found, 7);
    CHECK(relative_difference(found.cpu(), expected) < (type == at::kFloat ? 1e-7 : 1e-15));
  }
  const at::Tensor order = at::arange(20, at::kLong).flip(0), indices = at::empty({4}, order.options().device(gpu));
  there.fill_indices(indices, order.cuda());
  CHECK(indices.cpu().equal(order.slice(0, 5, 9)));
}

TEST_CASE("an array on a GPU trains in a lower precision nearly as a CPU in float32", "[gpu]") {
  if (!gpu_is_there()) return;
  const at::Device gpu(at::kCUDA, 0);
  const auto precision = GENERATE(Precision::kTf32, Precision::kBfloat16);
  const int chunk = GENERATE(1, 4);
  const CudaGraphs graphs = cuda_graphs(gpu);
  REQUIRE(graphs.backend != nullptr);
  for (Model model : {conv_net(DType::kFloat32, OptimizerKind::kSgd), mlp(DType::kFloat32, OptimizerKind::kAdamW)}) {
    INFO(model.name << ", " << name_of(precision) << ", chunk " << chunk);
    Array host(model.graph, model.recipe, chunked(chunk), 4, 5, at::kCPU);
    model.recipe.precision = precision;
    Array device(model.graph, model.recipe, chunked(chunk), 4, 5, gpu, graphs.backend);
    CHECK(at::globalContext().allowTF32CuBLAS() == (precision == Precision::kTf32));
    for (int b = 0; b < 4; ++b) {
      host.admit(b, trial(model, b));
      device.admit(b, trial(model, b));
    }
    compare_steps(host, device, model.batch, 6, 0.03);
    INFO(device.step_counts().why_eager);
    CHECK(device.step_counts().replayed == 4 * device.chunks());
  }
}

TEST_CASE("an array on a GPU trains as on a CPU", "[gpu]") {
  if (!gpu_is_there()) return;
  const OptimizerKind kind = GENERATE(from_range(optimizers())).kind;
  if (kind == OptimizerKind::kLion || kind == OptimizerKind::kRprop) return;  // signs make steps of other rounding
  const int chunk = GENERATE(1, 4);
  const bool captured = GENERATE(false, true);
  const CudaGraphs graphs = captured ? cuda_graphs(at::Device(at::kCUDA, 0)) : CudaGraphs{};
  INFO(graphs.why_none);
  REQUIRE((graphs.backend != nullptr) == captured);
  for (Model model : {conv_net(DType::kFloat64, kind), mlp(DType::kFloat64, kind)}) {
    INFO(model.name << ", chunk " << chunk);
    Array host(model.graph, model.recipe, chunked(chunk), 4, 5, at::kCPU);
    Array device(model.graph, model.recipe, chunked(chunk), 4, 5, at::Device(at::kCUDA, 0), graphs.backend);
    for (int b = 0; b < 4; ++b) {
      SlotInit init = trial(model, b);
      if (b == 3) init.hyper.clip_norm = 0.1;
      host.admit(b, init);
      device.admit(b, init);
    }
    compare_steps(host, device, model.batch, 10, 1e-9);
    INFO(device.step_counts().why_eager);
    CHECK(device.step_counts().captured == (captured ? device.chunks() : 0));
    CHECK(device.step_counts().replayed == (captured ? 8 * device.chunks() : 0));
  }
}

}  // namespace hfta::fusion::testing
