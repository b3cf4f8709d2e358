// Slots that are NaN or overflow, whichever and however many, change no bit of the others over whole epochs.
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "catch_after_torch.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/gpu.hpp"
#include "setting.hpp"
#include "tests/fusion/capture/gpu.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 19;
constexpr int kWidth = 5, kEpochs = 3;

Setting setting(Model model, std::int64_t classes, const Shape& input) {
  return random_setting(std::move(model), classes, input, {kSamples, kEpochs, 41});
}

// Fills the floating-point tensors whose names begin so.
StateBytes poisoned(StateBytes bytes, float value, const std::string& prefix) {
  const SafetensorsFile file = parse_safetensors(bytes);
  int filled = 0;
  for (const TensorView& tensor : file.tensors) {
    if (tensor.dtype != "F32" || tensor.name.find(prefix) != 0) continue;
    auto* data = const_cast<std::byte*>(tensor.bytes.data());
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof value) std::memcpy(data + i, &value, sizeof value);
    ++filled;
  }
  REQUIRE(filled > 0);
  return bytes;
}

struct Poison {
  const char* name;
  float value;
  std::string prefix;  ///< Of the tensors that are filled.
  bool always;         ///< Whatever the optimizer: momentum begins anew with the first step.
};

/// What slots did, in bytes where NaN is equal to itself.
struct Outcome {
  std::vector<std::map<std::string, double>> last{kWidth};
  std::vector<StateBytes> states;
};

Outcome trained(const Setting& s, int chunk, const at::Device& device, const std::set<int>& bad, const Poison& poison) {
  Array array(s.model.graph, s.model.recipe,
              {.lowering = chunked(chunk, {}, 2),
               .width = kWidth,
               .study_seed = 5,
               .device = device,
               .graphs = cuda_graphs(device).backend});
  for (int b = 0; b < kWidth; ++b) {
    SlotInit init = trial(s.model, b);
    if (b != 1) init.hyper.clip_norm = 0.1 * (1 + b);
    array.admit(b, init);
    if (!bad.contains(b)) continue;
    const StateBytes state = poisoned(array.extract(b), poison.value, poison.prefix);
    array.clear(b);
    array.insert(b, init, state);
  }
  const DeviceData train = on_device(s.train, device), validation = on_device(s.validation, device);
  const Epochs epochs(s.model.recipe, {}, train, &validation);
  Outcome outcome;
  for (int e = 0; e < kEpochs; ++e) {
    for (const EpochResult& r : epochs.run(array)) outcome.last[static_cast<std::size_t>(r.slot)] = r.metrics;
  }
  for (int b = 0; b < kWidth; ++b) outcome.states.push_back(array.extract(b));
  return outcome;
}

std::vector<Setting> settings() {
  Model dropout = classifier("dropout",
                             {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{16}}),
                              layer("dropout", {0.4}), layer("linear", {std::int64_t{16}, std::int64_t{4}})},
                             {3, 4}, 4, DType::kFloat32, OptimizerKind::kAdam);
  return {setting(conv_net(DType::kFloat32, OptimizerKind::kSgd), 5, {1, 8, 8}),
          setting(mlp(DType::kFloat32, OptimizerKind::kAdamW), 4, {3, 4}), setting(std::move(dropout), 4, {3, 4})};
}

void check_poison(int chunk, const at::Device& device) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinite = std::numeric_limits<float>::infinity();
  // Large weights are finite, and so are the activations of the first layer; what is made of them overflows.
  const Poison poisons[] = {{"NaN weights", kNan, "", true},
                            {"infinite weights", kInfinite, "", true},
                            {"weights that overflow", 1e38f, "layers", true},
                            {"NaN optimizer", kNan, "optimizer", false}};
  const std::set<int> masks[] = {{1, 3}, {0, 2, 4}, {0, 1, 2, 4}, {1, 2, 3, 4}, {0, 4}};
  for (const Setting& s : settings()) {
    const Outcome clean = trained(s, chunk, device, {}, poisons[0]);
    for (const Poison& poison : poisons) {
      for (const std::set<int>& bad : masks) {
        const Outcome found = trained(s, chunk, device, bad, poison);
        for (int b = 0; b < kWidth; ++b) {
          INFO(s.model.name << ", chunk " << chunk << ", " << poison.name << ", " << bad.size() << " of them, slot "
                            << b);
          const auto at = static_cast<std::size_t>(b);
          if (bad.contains(b)) {
            CHECK_FALSE((poison.always && std::isfinite(found.last[at].at("val_loss"))));
          } else {
            CHECK(found.last[at] == clean.last[at]);
            CHECK(found.states[at] == clean.states[at]);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("poisoned slots change no bit of their neighbours over epochs") {
  check_poison(GENERATE(as<int>(), kCompiled, 1, 2, 4, 5), at::kCPU);
}

TEST_CASE("poisoned slots change no bit of their neighbours over epochs on a GPU", "[gpu]") {
  if (!gpu_is_there()) return;
  check_poison(GENERATE(as<int>(), 1, 2, 4, 5), first_gpu());
}

TEST_CASE("infinite gradients under clipping stay where they are") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 2, 4);
  for (const OptimizerInfo& optimizer : optimizers()) {
    Model model = mlp(DType::kFloat32, optimizer.kind);
    const auto run = [&](bool poison) {
      Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 4, .study_seed = 5});
      array.keep_gradients();
      Batch batch = model.batch;
      Samples wild = batch.parts[0];
      wild.inputs = {wild.inputs[0].stored() * 3e38f};  // outputs of the first layer overflow
      batch.parts.push_back(wild);
      for (int b = 0; b < 4; ++b) {
        SlotInit init = trial(model, b);
        init.hyper.clip_norm = 0.01;
        array.admit(b, init);
      }
      bool infinite = false;
      for (int step = 0; step < 3; ++step) {
        for (int k = 0; k < array.chunks(); ++k) {
          Batch own{batch.parts, {}};
          for (int b = array.first_slot(k); b < array.first_slot(k) + array.slots_per_chunk(); ++b)
            own.part_of.push_back(poison && b % 2);
          static_cast<void>(step_chunk(array, k, own));
          for (const auto& [name, gradient] : array.gradients(k)) {
            if (gradient.defined()) infinite = infinite || !gradient.isfinite().all().item<bool>();
          }
        }
      }
      CHECK(infinite == poison);
      return std::pair(array.extract(0), array.extract(2));
    };
    INFO(optimizer.name << ", chunk " << chunk);
    CHECK((run(true) == run(false)));
  }
}

}  // namespace hfta::fusion::testing
