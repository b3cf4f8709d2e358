// Arrays of compiled slots on more threads than slots: the same bits as on one thread.
#include <array>
#include <stdexcept>

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kSteps = 3;

/// Large enough that its kernels are shared, with what a step may have.
Model images() {
  const auto whole = [](std::int64_t n) { return LayerArg(n); };
  const auto conv = [&](std::int64_t from, std::int64_t to) {
    return layer("conv2d", {whole(from), whole(to), whole(3)}, "", {{"padding", whole(1)}});
  };
  return classifier(
      "images",
      {conv(2, 24), layer("batch_norm2d", {whole(24)}), layer("relu"), layer("max_pool2d", {whole(2)}), conv(24, 32),
       layer("relu"), conv(32, 40), layer("relu"), layer("flatten"), layer("linear", {whole(40 * 64), whole(64)}),
       layer("gelu"), layer("dropout", {0.25}), layer("linear", {whole(64), whole(5)})},
      {2, 16, 16}, 5, DType::kFloat32, OptimizerKind::kAdam, 48);
}

/// Losses and states after some steps.
struct Trained {
  std::vector<std::vector<double>> losses;
  std::vector<StateBytes> states;

  bool operator==(const Trained&) const = default;
};

Trained trained(const Model& model, int width, int threads) {
  Array array(model.graph, model.recipe,
              {.lowering = chunked(kCompiled, {}, threads), .width = width, .study_seed = 5});
  for (int b = 0; b < width; ++b) array.admit(b, trial(model, b));
  Trained result;
  for (int s = 0; s < kSteps; ++s) result.losses.push_back(step_all(array, model.batch));
  for (int b = 0; b < width; ++b) result.states.push_back(array.extract(b));
  return result;
}

}  // namespace

TEST_CASE("arrays of fewer slots than threads, or of others than multiples, train to the bits of one thread",
          "[numeric]") {
  const Model model = images();
  for (const int width : {1, 2, 3}) {
    const Trained alone = trained(model, width, 1);
    for (const int threads : {2, 3, 4}) {
      INFO(width << " slots, " << threads << " threads");
      CHECK(trained(model, width, threads) == alone);
    }
  }
}

TEST_CASE("an array that is narrowed goes on to the same bits, by teams") {
  const Model model = images();
  const auto narrowed = [&](int threads) {
    Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled, {}, threads), .width = 4, .study_seed = 5});
    for (int b = 0; b < 4; ++b) array.admit(b, trial(model, b));
    static_cast<void>(step_all(array, model.batch));
    array.clear(1);
    array.clear(3);
    static_cast<void>(step_all(array, model.batch));  // two of four
    array.clear(2);
    array.resize(1);
    static_cast<void>(step_all(array, model.batch));
    return array.extract(0);
  };
  CHECK(narrowed(1) == narrowed(2));
  CHECK(narrowed(1) == narrowed(4));
}

TEST_CASE("a slot of a team that fails does not keep the others from running") {
  const Model model = images();
  Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled, {}, 2), .width = 3, .study_seed = 5});
  for (int b = 0; b < 3; ++b) array.admit(b, trial(model, b));
  for (const int failing : {0, 2}) {
    std::array<bool, 3> ran = {};
    const auto work = [&](int k) {
      ran[static_cast<std::size_t>(k)] = true;
      if (k == failing) throw std::runtime_error("this one");
      static_cast<void>(step_chunk(array, k, model.batch));
    };
    CHECK_THROWS_WITH(array.for_each_chunk(work), "this one");
    CHECK(ran == std::array<bool, 3>{true, true, true});
  }
}

}  // namespace hfta::fusion::testing
