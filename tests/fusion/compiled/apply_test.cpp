// Slots whose gradients are applied while the backward goes on train the bits of those whose gradients are kept.
#include "../array/catch_after_torch.hpp"
#include "../array/models.hpp"
#include "../array/setting.hpp"
#include "base/error.hpp"
#include "fusion/ways.hpp"

namespace hfta::fusion::testing {
namespace {

using Number = std::int64_t;

Model large_conv_net(OptimizerKind optimizer) {
  const auto conv = [](Number from, Number to) {
    return layer("conv2d", {from, to, Number{3}}, "", {{"padding", Number{1}}, {"bias", false}});
  };
  return classifier("large conv net",
                    {conv(1, 96), layer("batch_norm2d", {Number{96}}), layer("relu"), conv(96, 96),
                     layer("batch_norm2d", {Number{96}}), layer("relu"), layer("max_pool2d", {Number{2}}),
                     layer("flatten"), layer("linear", {Number{864}, Number{5}})},
                    {1, 6, 6}, 5, DType::kFloat32, optimizer);
}

// What two slots have become after two epochs.
std::vector<StateBytes> trained(Model model, bool clips, int threads, const Shape& input) {
  model.recipe.clips = clips;
  const Setting s = random_setting(std::move(model), 5, input, {27, 2, 17});
  Lowering lowering = chunked(kCompiled);
  lowering.threads_per_worker = threads;
  Array array(s.model.graph, s.model.recipe, {.lowering = lowering, .width = 2, .study_seed = 5});
  for (int b = 0; b < 2; ++b) array.admit(b, trial(s.model, b));
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  for (int e = 0; e < 2; ++e) static_cast<void>(epochs.run(array));
  return {array.extract(0), array.extract(1)};
}

}  // namespace

TEST_CASE("gradients that are applied as they come train the bits of those that are kept", "[numeric]") {
  const OptimizerInfo& optimizer = GENERATE(from_range(optimizers().begin(), optimizers().end()));
  CAPTURE(optimizer.name);
  const Model mlp = large_mlp(DType::kFloat32, optimizer.kind);
  const std::vector<StateBytes> kept = trained(mlp, true, 1, {3, 16});
  CHECK((trained(mlp, false, 1, {3, 16}) == kept));
  CHECK((trained(mlp, false, 2, {3, 16}) == kept));
  CHECK((trained(in_groups(mlp), false, 1, {3, 16}) == trained(in_groups(mlp), true, 1, {3, 16})));
}

TEST_CASE("convolutions' gradients that are applied as they come train the bits of those that are kept", "[numeric]") {
  const Model net = large_conv_net(OptimizerKind::kAdam);
  const std::vector<StateBytes> kept = trained(net, true, 1, {1, 6, 6});
  CHECK((trained(net, false, 1, {1, 6, 6}) == kept));
  CHECK((trained(net, false, 2, {1, 6, 6}) == kept));
}

TEST_CASE("so they do where inputs of layers lie encoded", "[numeric]") {
  const OptimizerKind optimizer = GENERATE(OptimizerKind::kAdam, OptimizerKind::kSgd, OptimizerKind::kRmsprop);
  const auto compressed = [](Model model) {
    model.recipe.compression.emplace();
    model.recipe.compression->interval = 2;
    return model;
  };
  const Model net = compressed(large_conv_net(optimizer)), mlp = compressed(large_mlp(DType::kFloat32, optimizer));
  CHECK((trained(net, false, 1, {1, 6, 6}) == trained(net, true, 1, {1, 6, 6})));
  CHECK((trained(mlp, false, 1, {3, 16}) == trained(mlp, true, 1, {3, 16})));
}

TEST_CASE("gradients that are applied as they come give their memory to others") {
  Model mlp = large_mlp(DType::kFloat32, OptimizerKind::kAdam);
  const auto bytes = [&](bool clips) {
    mlp.recipe.clips = clips;
    const WayQuestion question{mlp.graph, mlp.recipe, at::kCPU, 1, 1};
    const std::vector<Lowering> ways = {chunked(kCompiled)};
    return memory_of(question, ways).front().at_work;
  };
  constexpr std::int64_t kGradients = 4 * (1500 * 49 + 60 * 1501);
  CHECK(bytes(false) < bytes(true) - kGradients / 3);
}

TEST_CASE("a slot that clips is refused where the recipe says that none does") {
  Model model = large_mlp(DType::kFloat32, OptimizerKind::kSgd);
  SlotInit init = trial(model, 0);
  init.hyper.clip_norm = 1;
  Array clips(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
  CHECK_NOTHROW(clips.admit(0, init));
  model.recipe.clips = false;
  Array none(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
  CHECK_THROWS_WITH(none.admit(0, init), "slot: found clip_norm, wanted none: its recipe says that no slot has one");
}

}  // namespace hfta::fusion::testing
