// The CUDA kernels against the CPU's loops. Without kernels in the build their absence is told; without a GPU the
// comparisons end as passed with a warning, and `[gpu]` names them for machines that have one.
#include "catch_after_torch.hpp"
#include "fusion/array/on_gpu.hpp"
#include "fusion/cpu/kernels/counted_mask.hpp"
#include "fusion/cuda/slot_kernels.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

bool gpu_is_there() {
  if (cuda::built() && at::hasCUDA()) return true;
  WARN("no GPU, or a build without kernels: nothing was compared");
  return false;
}

}  // namespace

TEST_CASE("a build without kernels says so") {
  if (cuda::built()) return;
  CHECK_THROWS_WITH(cuda::dropout_masks(static_cast<float*>(nullptr), 0, 0, nullptr, 0, nullptr),
                    Catch::Contains("HFTA_CUDA=ON"));
}

TEST_CASE("tensors of a CPU never go to the kernels") { CHECK_FALSE(has_gpu_kernels(at::zeros({2, 2}))); }

TEST_CASE("masks on a GPU are the host's, bit for bit", "[gpu]") {
  if (!gpu_is_there()) return;
  const std::vector<double> rates = {0.0, 0.3, 1.0};
  const std::vector<SlotRandom> random = {{1, 2}, {3, std::uint64_t{1} << 40}, {5, 6}};
  const at::Tensor mask = at::empty({3, 7, 11}, at::TensorOptions().device(at::kCUDA).dtype(at::kFloat));
  fill_masks_on_gpu(mask, rates, random, 4);
  for (std::size_t b = 0; b < rates.size(); ++b) {
    const at::Tensor expected = at::empty({7, 11}, at::kFloat);
    fill_dropout_mask(expected.data_ptr<float>(), 77, rates[b], random[b].key, 4, random[b].step);
    CHECK(mask.select(0, static_cast<std::int64_t>(b)).cpu().equal(expected));
  }
}

TEST_CASE("an array on a GPU trains as on a CPU", "[gpu]") {
  if (!gpu_is_there()) return;
  const auto kind = GENERATE(OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW);
  const int chunk = GENERATE(1, 4);
  for (Model model : {conv_net(DType::kFloat64, kind), mlp(DType::kFloat64, kind)}) {
    INFO(model.name << ", chunk " << chunk);
    Array host(model.graph, model.recipe, chunked(chunk), 4, 5, at::kCPU);
    Array device(model.graph, model.recipe, chunked(chunk), 4, 5, at::Device(at::kCUDA, 0));
    for (int b = 0; b < 4; ++b) {
      SlotInit init = trial(model, b);
      if (b == 3) init.hyper.clip_norm = 0.1;
      host.admit(b, init);
      device.admit(b, init);
    }
    Batch there = model.batch;
    for (at::Tensor& input : there.parts[0].inputs) input = input.cuda();
    there.parts[0].target = there.parts[0].target.cuda();
    for (int s = 0; s < 10; ++s) {
      const std::vector<double> expected = step_all(host, model.batch);
      for (int k = 0; k < device.chunks(); ++k) {
        const at::Tensor loss = step_chunk(device, k, there);
        for (std::int64_t i = 0; i < loss.numel(); ++i) {
          const auto slot = static_cast<std::size_t>(device.first_slot(k) + i);
          CHECK(loss.data_ptr<double>()[i] == Approx(expected[slot]).epsilon(1e-9));
        }
      }
    }
  }
}

}  // namespace hfta::fusion::testing
