// What happens next door changes no bit.

#include <cstring>
#include <limits>

#include "catch_after_torch.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/gpu.hpp"
#include "models.hpp"
#include "tests/fusion/capture/gpu.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 4;

std::vector<Model> models(int chunk) {
  std::vector<Model> all = {conv_net(DType::kFloat32, OptimizerKind::kSgd), mlp(DType::kFloat32, OptimizerKind::kAdamW),
                            in_groups(mlp(DType::kFloat32, OptimizerKind::kSgd))};
  all.push_back(classifier("dropout",
                           {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{16}}),
                            layer("dropout", {0.4}), layer("linear", {std::int64_t{16}, std::int64_t{4}})},
                           {3, 4}, 4, DType::kFloat32, OptimizerKind::kAdam));
  const std::size_t in_float32 = chunk == kCompiled ? 0 : all.size();
  for (std::size_t i = 0; i < in_float32; ++i) all.push_back(in_bfloat16(all[i]));
  return all;
}

// The state after `steps`, with `between` called after each of them.
template <typename Between>
StateBytes trained(const Model& model, int chunk, const at::Device& device, int slot, int steps, Between between) {
  Array array(model.graph, model.recipe,
              {.lowering = chunked(chunk),
               .width = kWidth,
               .study_seed = 5,
               .device = device,
               .graphs = cuda_graphs(device).backend});
  const Batch batch = on_device(model.batch, device);
  for (int b = 0; b < kWidth; ++b) array.admit(b, trial(model, b));
  for (int s = 0; s < steps; ++s) {
    step_all(array, batch);
    between(array, s);
  }
  return array.extract(slot);
}

StateBytes poisoned(const StateBytes& clean, float value) {
  StateBytes bytes = clean;
  const SafetensorsFile file = parse_safetensors(bytes);
  for (const TensorView& tensor : file.tensors) {
    auto* data = const_cast<std::byte*>(tensor.bytes.data());
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof value) std::memcpy(data + i, &value, sizeof value);
  }
  return bytes;
}

void check_neighbours(int chunk, const at::Device& device) {
  for (const Model& model : models(chunk)) {
    INFO(model.name << ", chunk " << chunk);
    const auto nothing = [](Array&, int) {};
    const StateBytes expected = trained(model, chunk, device, 2, 6, nothing);
    CHECK(expected == trained(model, chunk, device, 2, 6, [](Array& array, int s) {
            if (s == 1) array.clear(3);
          }));
    CHECK(expected == trained(model, chunk, device, 2, 6, [&](Array& array, int s) {
            if (s != 2) return;
            array.clear(1);
            array.admit(1, trial(model, 9));
            array.clear(3);
          }));
    for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      CHECK(expected == trained(model, chunk, device, 2, 6, [&](Array& array, int s) {
              if (s != 1) return;
              const StateBytes bad = poisoned(array.extract(3), poison);
              array.clear(3);
              array.insert(3, trial(model, 3), bad);
            }));
    }
  }
}

void check_slots(int chunk, const at::Device& device) {
  for (const Model& model : models(chunk)) {
    INFO(model.name << ", chunk " << chunk);
    Array array(model.graph, model.recipe,
                {.lowering = chunked(chunk, {}, 2),
                 .width = kWidth,
                 .study_seed = 5,
                 .device = device,
                 .graphs = cuda_graphs(device).backend});
    const Batch batch = on_device(model.batch, device);
    for (int b = 0; b < kWidth; ++b) array.admit(b, trial(model, 2));
    for (int s = 0; s < 6; ++s) step_all(array, batch);
    for (int b = 1; b < kWidth; ++b) CHECK(array.extract(0) == array.extract(b));
  }
}

}  // namespace

TEST_CASE("neighbours that leave, arrive or turn NaN change no bit of a slot") {
  check_neighbours(GENERATE(as<int>(), kCompiled, 1, 2, 4), at::kCPU);
}

TEST_CASE("neighbours that leave, arrive or turn NaN change no bit of a slot on a GPU", "[gpu]") {
  if (!gpu_is_there()) return;
  check_neighbours(GENERATE(as<int>(), 1, 2, 4), first_gpu());
}

TEST_CASE("clipping is by the slot's own norm") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const auto run = [&](bool poison) {
    Array array(model.graph, model.recipe, {.lowering = chunked(4), .width = kWidth, .study_seed = 5});
    for (int b = 0; b < kWidth; ++b) {
      SlotInit init = trial(model, b);
      init.hyper.clip_norm = 0.01;
      array.admit(b, init);
    }
    if (poison) {
      const StateBytes bad = poisoned(array.extract(1), std::numeric_limits<float>::quiet_NaN());
      array.clear(1);
      array.insert(1, trial(model, 1), bad);
    }
    for (int s = 0; s < 3; ++s) step_all(array, model.batch);
    return std::pair(array.extract(0), array.extract(3));
  };
  const auto clean = run(false), beside_nan = run(true);
  CHECK(clean.first == beside_nan.first);
  CHECK(clean.second == beside_nan.second);
}

TEST_CASE("the same trial has the same bits in whichever slot") {
  check_slots(GENERATE(as<int>(), kCompiled, 1, 2, 4), at::kCPU);
}

TEST_CASE("the same trial has the same bits in whichever slot on a GPU", "[gpu]") {
  if (!gpu_is_there()) return;
  check_slots(GENERATE(as<int>(), 1, 2, 4), first_gpu());
}

TEST_CASE("a slot that moves to another array goes on bit for bit") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 4);
  for (const Model& model : models(chunk)) {
    INFO(model.name << ", chunk " << chunk);
    const StateBytes expected = trained(model, chunk, at::kCPU, 1, 6, [](Array&, int) {});
    Array first(model.graph, model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
    Array second(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 2 * kWidth, .study_seed = 5});
    first.admit(1, trial(model, 1));
    for (int s = 0; s < 3; ++s) step_all(first, model.batch);
    second.insert(6, trial(model, 1), first.extract(1));
    CHECK(second.progress(6).step == 3);
    for (int s = 0; s < 3; ++s) step_all(second, model.batch);
    CHECK(expected == second.extract(6));
  }
}

TEST_CASE("resizing keeps the slots that stay") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kAdam);
  Array array(model.graph, model.recipe, {.lowering = chunked(2), .width = kWidth, .study_seed = 5});
  array.admit(0, trial(model, 0));
  array.admit(3, trial(model, 3));
  step_all(array, model.batch);
  const StateBytes first = array.extract(0);
  CHECK_THROWS_WITH(array.resize(3), Catch::Contains("slot 3 is occupied"));
  array.clear(3);
  array.resize(1);
  CHECK(array.width() == 1);
  CHECK(array.extract(0) == first);
  array.resize(5);
  CHECK(array.extract(0) == first);
  CHECK_FALSE(array.occupied(4));
}

TEST_CASE("a state that does not fit is refused and the slot stays empty") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd), other = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  Array source(other.graph, other.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  source.admit(0, trial(other, 0));
  const StateBytes foreign = source.extract(0);
  Array array(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  array.admit(0, trial(model, 0));
  const StateBytes own = array.extract(0);
  array.clear(0);
  CHECK_THROWS_WITH(array.insert(0, trial(model, 0), foreign), Catch::Contains("slot state"));
  CHECK_FALSE(array.occupied(0));
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{50}, own.size() / 2, own.size() - 1}) {
    const StateBytes cut(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_THROWS(array.insert(0, trial(model, 0), cut));
    CHECK_FALSE(array.occupied(0));
  }
  array.insert(0, trial(model, 0), own);
  CHECK(array.extract(0) == own);
}

}  // namespace hfta::fusion::testing
