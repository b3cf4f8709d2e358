// Ranks that each run some samples of every batch: together what one device is, and equal to each other in every bit.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <optional>

#include "../collectives/as_ranks.hpp"
#include "../collectives/slow_link.hpp"
#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "group_checks.hpp"
#include "models.hpp"
#include "setting.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;
constexpr std::int64_t kIgnored = -100;

struct Case {
  Setting setting;
  std::optional<double> clip_norm = {};
  bool leaves = false;  ///< Slot 1 leaves behind the first epoch, slot 2 comes then.
};

// 27 samples in batches of 6, so that the last batch has 3: fewer than four ranks.
Case case_of(Model model, std::int64_t classes, const Shape& input) {
  return {random_setting(std::move(model), classes, input, {27, 3, 17})};
}

Case of_mlp(DType dtype, OptimizerKind optimizer) { return case_of(mlp(dtype, optimizer), 4, {3, 4}); }

Case with_ignored(Case c) {
  c.setting.train.target.stored().slice(0, 0, 24, 3).fill_(kIgnored);  // in different numbers in the ranks' shares
  return c;
}

struct Trained {
  std::vector<StateBytes> states;  // by slot
  std::vector<at::Tensor> answers;
  std::vector<double> losses;  // train_loss, epoch by epoch and slot by slot
  std::vector<double> validation;
};

// Where no slot clips, gradients travel piece by piece while the backward goes on.
Trained trained(const Case& c, int chunk, Collectives* group, const std::vector<int>& parts = {}) {
  const Setting& s = c.setting;
  Recipe recipe = s.model.recipe;
  recipe.clips = c.clip_norm.has_value();
  Array array(s.model.graph, recipe,
              {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5, .group = group, .parts = parts});
  const auto admit = [&](int b) {
    SlotInit init = trial(s.model, b);
    init.hyper.clip_norm = c.clip_norm;
    array.admit(b, init);
  };
  for (int b = 0; b < (c.leaves ? 2 : kWidth); ++b) admit(b);
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  Trained found;
  for (int e = 0; e < 3; ++e) {
    for (const EpochResult& result : epochs.run(array)) {
      found.losses.push_back(result.metrics.at("train_loss"));
      if (result.metrics.contains("val_loss")) found.validation.push_back(result.metrics.at("val_loss"));
    }
    if (e > 0 || !c.leaves) continue;
    array.clear(1);
    admit(2);
  }
  const Samples all{s.validation.inputs, s.validation.target};
  for (int b = 0; b < kWidth; ++b) {
    if (!array.occupied(b)) continue;
    found.states.push_back(array.extract(b));
    const at::Tensor output = array.predict(b / array.slots_per_chunk(), all);
    found.answers.push_back((array.slots_per_chunk() == 1 ? output : output[b % array.slots_per_chunk()]).clone());
  }
  return found;
}

std::vector<Trained> trained_by_ranks(const Case& c, int chunk, int ranks, const std::vector<int>& parts = {}) {
  std::vector<Trained> found(static_cast<std::size_t>(ranks));
  const auto thrown = as_ranks(ranks, [&](Collectives& group) {
    found[static_cast<std::size_t>(group.rank())] = trained(c, chunk, &group, parts);
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  return found;
}

void check_equal(const Case& c, int chunk, int ranks, double tolerance, const std::vector<int>& parts = {}) {
  const Trained alone = trained(c, chunk, nullptr);
  const std::vector<Trained> found = trained_by_ranks(c, chunk, ranks, parts);
  REQUIRE(found.front().answers.size() == alone.answers.size());
  for (std::size_t b = 0; b < alone.answers.size(); ++b) {
    CHECK(relative_difference(found.front().answers[b], alone.answers[b]) < tolerance);
  }
  REQUIRE(found.front().losses.size() == alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    CHECK(found.front().losses[i] == Approx(alone.losses[i]).epsilon(tolerance));
  }
  CHECK(found.front().validation.size() == alone.validation.size());
  for (const Trained& rank : found) {
    CHECK((rank.states == found.front().states));
    CHECK(rank.losses == found.front().losses);
  }
}

}  // namespace

TEST_CASE("ranks are together what one device is, in float64 to 1e-12, and each other's bits", "[numeric]") {
  const DType type = DType::kFloat64;
  const int ranks = GENERATE(2, 3, 4);
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const auto cases = [&](int number) {
    switch (number) {
      case 0:
        return of_mlp(type, OptimizerKind::kSgd);
      case 1:
        return with_ignored(of_mlp(type, OptimizerKind::kAdamW));
      case 2:
        return case_of(dropping(type, OptimizerKind::kAdam), 5, {1, 8, 8});
      case 3: {
        Case c = case_of(accumulating(in_groups(mlp(type, OptimizerKind::kSgd))), 4, {3, 4});
        return with_ignored(std::move(c));
      }
      case 4: {
        Case c = of_mlp(type, OptimizerKind::kSgd);
        c.setting.model.recipe.loss_options.class_weight = {1, 2, 0.5, 3};
        c.clip_norm = 0.05;
        return c;
      }
      default: {
        Case c = case_of(dropping(type, OptimizerKind::kSgd), 5, {1, 8, 8});
        c.leaves = true;
        return c;
      }
    }
  };
  for (int number = 0; number < 6; ++number) {
    INFO("case " << number << ", " << ranks << " ranks, chunk " << chunk);
    check_equal(cases(number), chunk, ranks, 1e-12);
  }
}

// Batches of 6 samples and one of 3: some ranks have few of them, or none.
TEST_CASE("ranks that have unequal parts of the batches are together what one device is", "[numeric]") {
  const DType type = DType::kFloat64;
  const auto parts = GENERATE(as<std::vector<int>>(), std::vector{3, 1}, std::vector{1, 5}, std::vector{1, 4, 2},
                              std::vector{0, 1, 0}, std::vector{kMostParts, 1, kMostParts});
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const bool drops = GENERATE(false, true);
  const Case c = drops ? case_of(dropping(type, OptimizerKind::kAdam), 5, {1, 8, 8})
                       : with_ignored(of_mlp(type, OptimizerKind::kAdamW));
  check_equal(c, chunk, static_cast<int>(parts.size()), 1e-12, parts);
}

TEST_CASE("gradients of large layers travel in pieces, to the bits of all at once", "[numeric]") {
  const int ranks = GENERATE(2, 3);
  Case c = with_ignored(case_of(large_mlp(DType::kFloat64, OptimizerKind::kAdam), 5, {3, 16}));
  check_equal(c, kCompiled, ranks, 1e-9);
  const std::vector<Trained> pieces = trained_by_ranks(c, kCompiled, ranks);
  c.clip_norm = 1e30;  // that no gradient has
  const std::vector<Trained> at_once = trained_by_ranks(c, kCompiled, ranks);
  for (std::size_t r = 0; r < pieces.size(); ++r) CHECK((pieces[r].states == at_once[r].states));
}

TEST_CASE("gradients that travel beside the backward give the bits of those that are waited for", "[numeric]") {
  const Case c = with_ignored(case_of(large_mlp(DType::kFloat32, OptimizerKind::kAdam), 5, {3, 16}));
  const std::vector<Trained> wanted = trained_by_ranks(c, kCompiled, 2);
  std::vector<Trained> found(2);
  const auto thrown = as_ranks(2, [&](Collectives& group) {
    SlowLink link(group, 1e9);
    found[static_cast<std::size_t>(group.rank())] = trained(c, kCompiled, &link);
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  for (std::size_t r = 0; r < found.size(); ++r) {
    CHECK((found[r].states == wanted[r].states));
    CHECK(found[r].losses == wanted[r].losses);
  }
}

TEST_CASE("print how much of a slow network's time is hidden, for docs/devices.md", "[.print]") {
  constexpr std::int64_t kSteps = 40, kBatch = 512, kWide = 512;
  std::vector<LayerSpec> layers = {layer("flatten")};
  for (int l = 0; l < 8; ++l) {
    layers.push_back(layer("linear", {kWide, kWide}));
    layers.push_back(layer("relu"));
  }
  layers.push_back(layer("linear", {kWide, std::int64_t{10}}));
  Model model = classifier("mlp", layers, {kWide}, 10, DType::kFloat32, OptimizerKind::kSgd, kBatch);
  model.recipe.clips = false;
  const Setting s = random_setting(std::move(model), 10, {kWide}, {kBatch * kSteps, 3, 17});
  const auto milliseconds = [&](double rate, bool beside) {
    double of_step = 0;
    const auto thrown = as_ranks(ranks_in_process(2), [&](Collectives& group) {
      SlowLink link(group, rate, beside);
      Array array(s.model.graph, s.model.recipe,
                  {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5, .group = &link});
      array.admit(0, trial(s.model, 0));
      const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
      static_cast<void>(epochs.run(array));
      const auto begin = std::chrono::steady_clock::now();
      static_cast<void>(epochs.run(array));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (group.rank() == 0) of_step = took.count() / kSteps * 1e3;
    });
    for (const std::string& error : thrown) CHECK(error.empty());
    return of_step;
  };
  const double alone = milliseconds(1e15, false);
  std::cout << fmt::format("without a network: {:.2f} ms a step\n", alone);
  for (const double rate : {4e9, 2e9, 1e9, 5e8, 2.5e8}) {
    const double waited = milliseconds(rate, false), beside = milliseconds(rate, true);
    std::cout << fmt::format(
        "{:.2f} GB/s: {:.2f} ms a step where it is waited for, {:.2f} beside the backward; exposed {:.0f} % of {:.2f} "
        "ms\n",
        rate / 1e9, waited, beside, 100 * (beside - alone) / (waited - alone), waited - alone);
  }
}

TEST_CASE("ranks are together what one device is, in float32 to 1e-6", "[numeric]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  check_equal(of_mlp(DType::kFloat32, OptimizerKind::kSgd), chunk, 2, 1e-6);
  check_equal(with_ignored(of_mlp(DType::kFloat32, OptimizerKind::kSgd)), chunk, 3, 1e-6);
  check_equal(case_of(dropping(DType::kFloat32, OptimizerKind::kSgd), 5, {1, 8, 8}), chunk, 2, 1e-6);
}

TEST_CASE("losses over numbers are divided as those over classes are", "[numeric]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  for (const Loss loss : {Loss::kMse, Loss::kBceWithLogits, Loss::kKlDiv, Loss::kPoissonNll}) {
    Case c = of_mlp(DType::kFloat64, OptimizerKind::kSgd);
    c.setting.model.recipe.loss = loss;
    c.setting.model.recipe.metrics.clear();
    for (DeviceData* data : {&c.setting.train, &c.setting.validation}) {
      data->target = SampleArray(counted_normal({27, 4}, DType::kFloat64, 3).sigmoid());
    }
    INFO(name_of(loss));
    check_equal(c, chunk, 2, 1e-12);
  }
}

TEST_CASE("a slot's bits do not depend on whether its neighbours train, whatever the ranks") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  Case c = case_of(dropping(DType::kFloat32, OptimizerKind::kAdam), 5, {1, 8, 8});
  const std::vector<Trained> all = trained_by_ranks(c, chunk, 2);
  c.leaves = true;
  const std::vector<Trained> fewer = trained_by_ranks(c, chunk, 2);
  REQUIRE(fewer.front().states.size() == 2);
  CHECK((fewer.front().states[0] == all.front().states[0]));
}

TEST_CASE("ranks pause behind the same step, and go on to the same bits") {
  const Setting s = case_of(dropping(DType::kFloat32, OptimizerKind::kAdam), 5, {1, 8, 8}).setting;
  check_pauses(s, chunked(GENERATE(as<int>(), kCompiled, 3)), kWidth, Shares::kBatches);
}

TEST_CASE("a rank that fails in the midst of an epoch is an error at the others") {
  const Setting s = of_mlp(DType::kFloat32, OptimizerKind::kSgd).setting;
  check_failure(s, kWidth, Shares::kBatches, GENERATE(1, 2));
}

TEST_CASE("an array of ranks refuses a model whose batches cannot be divided") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  for (const int ranks : {1, 2}) {
    const auto thrown = as_ranks(ranks, [&](Collectives& group) {
      const Array array(model.graph, model.recipe,
                        {.lowering = chunked(1), .width = 1, .study_seed = 5, .group = &group});
    });
    for (const std::string& error : thrown) {
      CHECK(error == (ranks == 1 ? ""
                                 : "array: its batches cannot be divided among 2 ranks: aten::batch_norm in layers.1 "
                                   "takes statistics over the whole batch"));
    }
  }
}

}  // namespace hfta::fusion::testing
