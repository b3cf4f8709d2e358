// The CUDA kernels against the CPU's loops. Without kernels in the build their absence is told; without a GPU the
// comparisons end as passed with a warning, and `[gpu]` names them for machines that have one.
#include "fusion/gpu.hpp"

#include <ATen/Context.h>

#include <cstring>
#include <limits>
#include <set>

#include "fusion/array/libtorch_settings.hpp"
#include "fusion/capture/step_kernels.hpp"
#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/data/safetensors.hpp"
#include "gpu.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

StateBytes filled_with_nan(StateBytes bytes) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const TensorView& tensor : parse_safetensors(bytes).tensors) {
    auto* data = const_cast<std::byte*>(tensor.bytes.data());
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof kNan) std::memcpy(data + i, &kNan, sizeof kNan);
  }
  return bytes;
}

// The same steps on both; losses within a relative tolerance.
void compare_steps(Array& host, Array& device, const Batch& batch, int steps, double tolerance) {
  const Batch there = on_device(batch, first_gpu());
  for (int s = 0; s < steps; ++s) {
    const std::vector<double> expected = step_all(host, batch);
    for (int k = 0; k < device.chunks(); ++k) {
      at::Tensor sums = device.fresh_losses(k).front();
      device.step(k, there, rates_of(device, k), sums);
      const at::Tensor loss = (sums[0] / sums[1]).cpu();
      for (std::int64_t i = 0; i < loss.numel(); ++i) {
        const auto slot = static_cast<std::size_t>(device.first_slot(k) + i);
        CHECK(loss.data_ptr<double>()[i] == Approx(expected[slot]).epsilon(tolerance));
      }
    }
  }
}

// A batch's states after some steps, by slot. Weights of the slots that are `bad` begin as NaN.
std::vector<StateBytes> states_after(int steps, const Model& model, const Lowering& lowering, const at::Device& device,
                                     const std::set<int>& bad) {
  constexpr int kWidth = 4;
  const CudaGraphs graphs = cuda_graphs(device);
  Array array(model.graph, model.recipe,
              {.lowering = lowering, .width = kWidth, .study_seed = 5, .device = device, .graphs = graphs.backend});
  for (int b = 0; b < kWidth; ++b) {
    array.admit(b, trial(model, b));
    if (!bad.contains(b)) continue;
    const StateBytes state = filled_with_nan(array.extract(b));
    array.clear(b);
    array.insert(b, trial(model, b), state);
  }
  const Batch batch = on_device(model.batch, device);
  for (int s = 0; s < steps; ++s) static_cast<void>(step_all(array, batch));
  std::vector<StateBytes> states;
  for (int b = 0; b < kWidth; ++b) states.push_back(array.extract(b));
  return states;
}

// Convolutions as wide as the tiles that libraries may pack several slots into.
Model convolutions(std::int64_t channels, Precision precision) {
  const auto conv = [&](std::int64_t from) {
    return layer("conv2d", {from, channels, std::int64_t{3}}, "", {{"padding", std::int64_t{1}}});
  };
  Model model = classifier("convolutions",
                           {conv(3), layer("relu"), conv(channels), layer("relu"), layer("flatten"),
                            layer("linear", {channels * 36, std::int64_t{5}})},
                           {3, 6, 6}, 5, DType::kFloat32);
  model.recipe.precision = precision;
  return model;
}

void check_poison(const at::Device& device, std::int64_t channels, Precision precision, const std::string& form) {
  INFO(channels << " channels, " << name_of(precision) << ", " << form << ", " << device.str());
  const Model model = convolutions(channels, precision);
  const Lowering lowering = chunked(4, {{"conv", form}});
  const std::vector<StateBytes> clean = states_after(4, model, lowering, device, {}),
                                found = states_after(4, model, lowering, device, {1, 2});
  for (const std::size_t b : {0, 3}) CHECK(found[b] == clean[b]);
  for (const std::size_t b : {1, 2}) CHECK(found[b] != clean[b]);
}

}  // namespace

TEST_CASE("GPUs are looked for before any test trains on a CPU") { CHECK(gpus_at_start() >= 0); }

TEST_CASE("grouped convolutions keep poisoned slots to themselves") {
  const auto channels = GENERATE(as<std::int64_t>(), 1, 3, 16, 32);
  for (const char* form : {"grouped", "grouped_channels_last"}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      check_poison(at::kCPU, channels, precision, form);
    }
  }
}

TEST_CASE("grouped convolutions on a GPU keep poisoned slots to themselves", "[gpu]") {
  if (!gpu_is_there()) return;
  const auto channels = GENERATE(as<std::int64_t>(), 1, 3, 16, 32, 64);
  for (const char* form : {"grouped", "grouped_channels_last", "unfolded"}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
      check_poison(first_gpu(), channels, precision, form);
    }
  }
}

TEST_CASE("an array on a GPU does the same again, bit for bit", "[gpu]") {
  if (!gpu_is_there()) return;
  const at::Device gpu = first_gpu();
  for (const int chunk : {1, 4}) {
    const Model model = conv_net(DType::kFloat32, OptimizerKind::kAdam);
    INFO("chunk " << chunk);
    CHECK((states_after(20, model, chunked(chunk), gpu, {}) == states_after(20, model, chunked(chunk), gpu, {})));
  }
}

TEST_CASE("whoever trains beside a CPU asks LibTorch for kernels that repeat themselves") {
  at::globalContext().setDeterministicCuDNN(false);
  at::globalContext().setBenchmarkCuDNN(true);
  set_libtorch(at::kCPU, Precision::kFloat32);
  CHECK_FALSE(at::globalContext().deterministicCuDNN());
  set_libtorch(at::Device(at::kCUDA, 0), Precision::kFloat32);
  CHECK(at::globalContext().deterministicCuDNN());
  CHECK_FALSE(at::globalContext().benchmarkCuDNN());
}

TEST_CASE("a build without kernels says so") {
  if (cuda::built()) return;
  CHECK_THROWS_WITH(cuda::dropout_masks(static_cast<float*>(nullptr), {}, {}, nullptr),
                    Catch::Contains("HFTA_CUDA=ON"));
}

TEST_CASE("a GPU has kernels where the build has them") {
  CHECK(has_step_kernels(at::kCPU));
  CHECK(has_step_kernels(first_gpu()) == cuda::built());
}

TEST_CASE("counted numbers on a GPU are the host's", "[gpu]") {
  if (!gpu_is_there()) return;
  const at::Device gpu = first_gpu();
  StepParams host(OptimizerKind::kSgd, at::kFloat, 3, 1, 1, at::kCPU),
      device(OptimizerKind::kSgd, at::kFloat, 3, 1, 1, gpu);
  const std::vector<double> rates = {0.0, 0.3, 1.0};
  const SlotStep step;
  std::vector<SlotRun> slots(3);
  for (std::size_t b = 0; b < 3; ++b)
    slots[b] = {{&step, 1}, {2 * b + 1, std::uint64_t{1} << (20 * b)}, {&rates[b], 1}};
  host.set(slots, 5);
  device.set(slots, 5);
  const StepKernels here(host, nullptr, true), there(device, nullptr, true);
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
  const at::Tensor order = at::arange(20, at::kLong).flip(0), all = at::randn({20, 3});
  CHECK(there.rows(all.cuda(), 4, order.cuda()).cpu().equal(all.index_select(0, order.slice(0, 5, 9))));
  CHECK(there.rows(all.cuda(), 4, {}).cpu().equal(all.slice(0, 5, 9)));
}

TEST_CASE("an array on a GPU trains in a lower precision nearly as a CPU in float32", "[gpu]") {
  if (!gpu_is_there()) return;
  const at::Device gpu = first_gpu();
  const auto precision = GENERATE(Precision::kTf32, Precision::kBfloat16);
  const int chunk = GENERATE(1, 4);
  const CudaGraphs graphs = cuda_graphs(gpu);
  REQUIRE(graphs.backend != nullptr);
  for (Model model : {conv_net(DType::kFloat32, OptimizerKind::kSgd), mlp(DType::kFloat32, OptimizerKind::kAdamW)}) {
    INFO(model.name << ", " << name_of(precision) << ", chunk " << chunk);
    Array host(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 4, .study_seed = 5});
    model.recipe.precision = precision;
    Array device(model.graph, model.recipe,
                 {.lowering = chunked(chunk), .width = 4, .study_seed = 5, .device = gpu, .graphs = graphs.backend});
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
  const CudaGraphs graphs = captured ? cuda_graphs(first_gpu()) : CudaGraphs{};
  INFO(graphs.why_none);
  REQUIRE((graphs.backend != nullptr) == captured);
  for (Model model : {conv_net(DType::kFloat64, kind), mlp(DType::kFloat64, kind)}) {
    INFO(model.name << ", chunk " << chunk);
    Array host(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 4, .study_seed = 5});
    Array device(
        model.graph, model.recipe,
        {.lowering = chunked(chunk), .width = 4, .study_seed = 5, .device = first_gpu(), .graphs = graphs.backend});
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
