// Whole epochs: the same curves at any width, beside any neighbour, from any interruption.
#include "fusion/epochs.hpp"

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/setting.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 25;  // the last batch of 6 is one sample short of nothing: 25 = 4 * 6 + 1

Setting setting(Model model, std::int64_t classes, const Shape& input) {
  return random_setting(std::move(model), classes, input, {kSamples, 10, 21});
}

SlotInit scheduled(const Model& model, int b) {
  SlotInit init = trial(model, b);
  init.hyper.schedule.kind = b % 2 == 0 ? ScheduleKind::kCosine : ScheduleKind::kStep;
  init.hyper.schedule.step_size = 3;
  init.hyper.schedule.per_step = b == 2;
  return init;
}

using Curve = std::vector<std::map<std::string, double>>;

void append(Curve& curve, const EpochResult& result) {
  REQUIRE(result.epoch == static_cast<int>(curve.size()) + 1);
  curve.push_back(result.metrics);
}

// Curves of trials 0..count-1 over `epochs` epochs in an array of `width` slots.
std::vector<Curve> curves(const Setting& s, int count, int epochs, int width, const Lowering& lowering,
                          const EpochOptions& options = {}) {
  Array array(s.model.graph, s.model.recipe, {.lowering = lowering, .width = width, .study_seed = 5});
  const Epochs run(s.model.recipe, options, s.train, &s.validation);
  std::vector<Curve> all(static_cast<std::size_t>(count));
  for (int next = 0; next < count; next += width) {
    const int here = std::min(width, count - next);
    for (int b = 0; b < here; ++b) array.admit(b, scheduled(s.model, next + b));
    for (int e = 0; e < epochs; ++e) {
      for (const EpochResult& r : run.run(array)) append(all[static_cast<std::size_t>(next + r.slot)], r);
    }
    for (int b = 0; b < here; ++b) array.clear(b);
  }
  return all;
}

void check_close(const std::vector<Curve>& found, const std::vector<Curve>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t t = 0; t < found.size(); ++t) {
    REQUIRE(found[t].size() == expected[t].size());
    for (std::size_t e = 0; e < found[t].size(); ++e) {
      for (const auto& [name, value] : expected[t][e]) {
        INFO("trial " << t << " epoch " << e + 1 << " " << name);
        CHECK(found[t][e].at(name) == Approx(value).epsilon(tolerance).margin(1e-12));
      }
    }
  }
}

Setting conv_setting(DType dtype) { return setting(conv_net(dtype, OptimizerKind::kAdamW), 5, {1, 8, 8}); }
Setting mlp_setting(DType dtype) { return setting(mlp(dtype, OptimizerKind::kSgd), 4, {3, 4}); }

}  // namespace

TEST_CASE("in float64, 100 steps are equal to 1e-9 at widths 1, 4 and 16") {
  for (const Setting& s : {conv_setting(DType::kFloat64), mlp_setting(DType::kFloat64)}) {
    INFO(s.model.name);
    const auto expected = curves(s, 16, 20, 1, chunked(1));  // 5 steps an epoch
    check_close(curves(s, 16, 20, 4, chunked(4)), expected, 1e-9);
    check_close(curves(s, 16, 20, 16, chunked(16)), expected, 1e-9);
    check_close(curves(s, 16, 20, 16, chunked(2, {}, 2)), expected, 1e-9);
    check_close(curves(s, 16, 20, 16, chunked(kCompiled, {}, 2)), expected, 1e-9);
  }
}

TEST_CASE("slots at different epochs keep their curves") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 2, 4);
  for (const Setting& s : {conv_setting(DType::kFloat32), mlp_setting(DType::kFloat32)}) {
    INFO(s.model.name << ", chunk " << chunk);
    const EpochOptions options;
    const auto expected = curves(s, 4, 6, 4, chunked(chunk));
    Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = 4, .study_seed = 5});
    const Epochs run(s.model.recipe, options, s.train, &s.validation);
    // Trials come in one after the other, so that every slot is at another epoch.
    std::vector<Curve> found(4);
    for (int e = 0; e < 9; ++e) {
      if (e < 4) array.admit(e, scheduled(s.model, e));
      for (const EpochResult& r : run.run(array)) {
        append(found[static_cast<std::size_t>(r.slot)], r);
        if (r.epoch == 6) array.clear(r.slot);
      }
    }
    CHECK((found == expected));
  }
}

TEST_CASE("order of samples follows its options") {
  const Setting s = mlp_setting(DType::kFloat64);
  const auto with = [&](OrderOptions order, bool drop_last = false) {
    return curves(s, 2, 3, 2, chunked(2), {order, drop_last, 3});
  };
  const auto shuffled = with({});
  CHECK((with({}) == shuffled));
  CHECK((with({false, false, false}) != shuffled));
  CHECK((with({true, true, false}) != shuffled));
  CHECK((with({true, true, false})[0][0] == shuffled[0][0]));  // epoch 0's order for ever
  CHECK((with({true, false, true}) != shuffled));
  CHECK((with({}, true) != shuffled));
  const Epochs all(s.model.recipe, {}, s.train, nullptr), dropped(s.model.recipe, {{}, true, 0}, s.train, nullptr);
  CHECK(all.steps_per_epoch() == 5);
  CHECK(dropped.steps_per_epoch() == 4);
}

TEST_CASE("train_loss is the mean over samples, validation is over the whole set") {
  Setting s = mlp_setting(DType::kFloat64);
  s.model.recipe.batch_size = static_cast<int>(kSamples);
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  SlotInit still = trial(s.model, 0);
  still.hyper.optimizer.lr = 0;
  array.admit(0, still);
  const Epochs whole(s.model.recipe, {}, s.train, &s.train);
  const auto one = whole.run(array).front().metrics;
  CHECK(one.at("train_loss") == Approx(one.at("val_loss")).epsilon(1e-12));
  s.model.recipe.batch_size = 6;
  const Epochs parts(s.model.recipe, {}, s.train, nullptr);
  CHECK(parts.run(array).front().metrics.at("train_loss") == Approx(one.at("train_loss")).epsilon(1e-12));
  CHECK(whole.evaluate(array, 0, s.train, "test_").at("test_loss") == Approx(one.at("val_loss")).epsilon(1e-12));
}

TEST_CASE("data take as much of a device as was told") {
  DataSource source;
  source.name = "digits";
  const Splits splits = load_data(source, kClassTargets, 1, hfta::testing::source_folder() / "data");
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Model model = classifier("digits", {layer("flatten"), layer("linear", {std::int64_t{64}, std::int64_t{10}})},
                                   {8, 8}, 10, dtype);
    const DeviceData data = to_device(splits.train, model.graph, model.recipe, at::kMeta);
    const auto bytes = static_cast<std::int64_t>(data.target.stored().nbytes() + data.inputs[0].stored().nbytes());
    CHECK(device_bytes(splits.train, model.graph, model.recipe, at::kMeta) == bytes);
    CHECK(device_bytes(splits.train, model.graph, model.recipe, at::kCPU) == 0);
  }
}

}  // namespace hfta::fusion::testing
