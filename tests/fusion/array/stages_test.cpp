// Ranks that are the stages of a pipeline: together what one device is, to the bit where no kernel spans a cut.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <optional>

#include "../collectives/as_ranks.hpp"
#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "fusion/staged.hpp"
#include "group_checks.hpp"
#include "models.hpp"
#include "setting.hpp"
#include "tied.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 5;

struct Case {
  Setting setting;
  bool leaves = false;  ///< Slot 1 leaves behind the first epoch, slot 4 comes then.
  int workers = 1;
  int width = kWidth;
  bool diverges = false;  ///< Slot 3 does.
};

// 27 samples in batches of 6: the last batch has 3.
Case case_of(Model model, std::int64_t classes, const Shape& input) {
  model.recipe.clips = model.clips;
  return {random_setting(std::move(model), classes, input, {27, 3, 17})};
}

// Bits, as a NaN equals nothing.
struct Trained {
  std::vector<StateBytes> states;    // by slot
  std::vector<at::Tensor> answers;   // by slot that is occupied
  std::vector<std::string> metrics;  // epoch by epoch and slot by slot
  std::vector<std::uint64_t> losses;
};

SlotInit trial_of(const Case& c, int slot) {
  SlotInit init = trial(c.setting.model, slot);
  if (c.diverges && slot == 3) init.hyper.optimizer.lr = 1e200;
  return init;
}

Trained trained(const Case& c, Collectives* group) {
  const Setting& s = c.setting;
  Array array(s.model.graph, s.model.recipe,
              {.lowering = chunked(kCompiled, {}, c.workers),
               .width = c.width,
               .study_seed = 5,
               .group = group,
               .shares = group == nullptr ? Shares::kBatches : Shares::kStages});
  for (int b = 0; b < (c.leaves ? c.width - 1 : c.width); ++b) array.admit(b, trial_of(c, b));
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  Trained found;
  for (int e = 0; e < 3; ++e) {
    for (const EpochResult& result : epochs.run(array)) {
      found.losses.push_back(std::bit_cast<std::uint64_t>(result.metrics.at("train_loss")));
      for (const auto& [name, value] : result.metrics) found.metrics.push_back(fmt::format("{} {:a}", name, value));
    }
    if (e > 0 || !c.leaves) continue;
    const StateBytes state = array.extract(1);
    array.clear(1);
    array.insert(4, trial_of(c, 1), state);  // another slot goes on with it
  }
  const Samples all{s.validation.inputs, s.validation.target};
  for (int b = 0; b < c.width; ++b) {
    found.states.emplace_back();
    if (!array.occupied(b)) continue;
    found.states.back() = array.extract(b);
    const at::Tensor output = array.predict(b, all);
    if (output.defined()) found.answers.push_back(output.clone().view(at::kByte));
  }
  return found;
}

std::vector<Trained> trained_in_stages(const Case& c, int stages) {
  std::vector<Trained> found(static_cast<std::size_t>(stages));
  const auto thrown =
      as_ranks(stages, [&](Collectives& group) { found[static_cast<std::size_t>(group.rank())] = trained(c, &group); });
  for (const std::string& error : thrown) CHECK(error.empty());
  return found;
}

void check_equal_bits(const Case& c, int stages) {
  const Trained alone = trained(c, nullptr);
  const std::vector<Trained> found = trained_in_stages(c, stages);
  const Trained& last = found.front();
  CHECK((last.states == alone.states));
  CHECK(last.metrics == alone.metrics);
  REQUIRE(last.answers.size() == alone.answers.size());
  for (std::size_t b = 0; b < alone.answers.size(); ++b) CHECK(at::equal(last.answers[b], alone.answers[b]));
  for (const Trained& rank : found) {
    CHECK((rank.states == alone.states));
    CHECK(rank.losses == alone.losses);
  }
  for (std::size_t r = 1; r < found.size(); ++r) CHECK(found[r].answers.empty());
}

}  // namespace

TEST_CASE("stages are together what one device is, to the bit", "[numeric]") {
  const int stages = GENERATE(2, 3);
  const DType type = GENERATE(DType::kFloat32, DType::kFloat64);
  const auto cases = [&](int number) -> Case {
    switch (number) {
      case 0:
        return case_of(mlp(type, OptimizerKind::kAdamW), 4, {3, 4});
      case 1:
        return case_of(conv_net(type, OptimizerKind::kSgd), 5, {1, 8, 8});
      case 2: {
        Case c = case_of(dropping(type, OptimizerKind::kAdam), 5, {1, 8, 8});
        c.leaves = true;
        return c;
      }
      case 3: {
        Case c = case_of(accumulating(in_groups(mlp(type, OptimizerKind::kSgd))), 4, {3, 4});
        c.setting.train.target.stored().slice(0, 0, 24, 3).fill_(-100);  // counts no more
        return c;
      }
      case 4:
        return case_of(large_mlp(type, OptimizerKind::kAdam), 5, {3, 16});
      default: {
        Case c = case_of(Tied().model(type, OptimizerKind::kSgd), Tied::kWide, {Tied::kWide});
        c.workers = 2;
        return c;
      }
    }
  };
  for (int number = 0; number < 6; ++number) {
    INFO("case " << number << ", " << stages << " stages, " << name_of(type));
    check_equal_bits(cases(number), stages);
  }
}

TEST_CASE("stages clip slots by the gradients of all of them, as one device does, to the bit", "[numeric]") {
  const int stages = GENERATE(2, 3);
  const DType type = GENERATE(DType::kFloat32, DType::kFloat64);
  const auto cases = [&](int number) -> Case {
    switch (number) {
      case 0: {
        Case c = case_of(clipping(in_groups(mlp(type, OptimizerKind::kAdamW))), 4, {3, 4});
        c.setting.model.graph.weights[2].trained = false;
        c.diverges = true;
        return c;
      }
      case 1: {
        Case c = case_of(clipping(conv_net(type, OptimizerKind::kSgd)), 5, {1, 8, 8});
        c.leaves = true;
        return c;
      }
      case 2: {
        Case c = case_of(clipping(accumulating(mlp(type, OptimizerKind::kSgd))), 4, {3, 4});
        c.setting.train.target.stored().slice(0, 0, 24, 3).fill_(-100);  // counts no more
        return c;
      }
      case 3:  // its messages are long
        return case_of(clipping(large_mlp(type, OptimizerKind::kSgd)), 5, {3, 16});
      default: {
        Case c = case_of(clipping(Tied().model(type, OptimizerKind::kSgd)), Tied::kWide, {Tied::kWide});
        c.workers = 2;
        return c;
      }
    }
  };
  for (int number = 0; number < 5; ++number) {
    INFO("case " << number << ", " << stages << " stages, " << name_of(type));
    Case c = cases(number);
    check_equal_bits(c, stages);
    const Trained clipped = trained(c, nullptr);
    const auto is_nan = [](const std::string& metric) { return metric.ends_with("nan"); };
    CHECK(std::any_of(clipped.metrics.begin(), clipped.metrics.end(), is_nan) == c.diverges);
    c.setting.model.clips = false;
    const Trained free = trained(c, nullptr);
    CHECK((clipped.states[0] != free.states[0]));
    CHECK((clipped.states[2] == free.states[2]));
  }
}

// Slots whose messages lie in one place, of which some are clipped in a step and others not, so that they leave the
// stages in different orders.
TEST_CASE("more slots than lanes are clipped, and none waits for another for ever") {
  Case c = case_of(clipping(accumulating(mlp(DType::kFloat32, OptimizerKind::kSgd))), 4, {3, 4});
  c.width = 2 * kLanes + 5;
  c.workers = GENERATE(1, 2);
  check_equal_bits(c, 3);
}

TEST_CASE("a stage holds the weights of its layers alone") {
  Model model = large_mlp(DType::kFloat32, OptimizerKind::kAdam);
  model.recipe.clips = false;
  const Array alone(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 2, .study_seed = 5});
  std::vector<std::int64_t> bytes(3);
  const auto thrown = as_ranks(3, [&](Collectives& group) {
    const Array array(
        model.graph, model.recipe,
        {.lowering = chunked(kCompiled), .width = 2, .study_seed = 5, .group = &group, .shares = Shares::kStages});
    bytes[static_cast<std::size_t>(group.rank())] = array.bytes_per_slot();
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  CHECK(bytes[0] + bytes[1] + bytes[2] == alone.bytes_per_slot());
  for (const std::int64_t own : bytes) CHECK(own > 0);
}

TEST_CASE("stages pause behind the same step, and go on to the same bits") {
  Model model = dropping(DType::kFloat32, OptimizerKind::kAdam);
  if (GENERATE(false, true)) model = clipping(std::move(model));
  const Setting s = case_of(std::move(model), 5, {1, 8, 8}).setting;
  check_pauses(s, chunked(kCompiled), kWidth, Shares::kStages);
}

TEST_CASE("a stage that fails in the midst of an epoch is an error at the others") {
  const Setting s = case_of(mlp(DType::kFloat32, OptimizerKind::kSgd), 4, {3, 4}).setting;
  check_failure(s, kWidth, Shares::kStages, GENERATE(0, 1, 2));
}

TEST_CASE("what a pipeline cannot train is refused, and why is said") {
  Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  model.recipe.clips = false;
  CHECK(why_not_staged(model.graph, model.recipe, 3).empty());
  CHECK_THAT(why_not_staged(model.graph, model.recipe, 4),
             Catch::Contains("found 4 stages of a pipeline, wanted at most 3"));
  model.recipe.compression.emplace();
  CHECK_THAT(why_not_staged(model.graph, model.recipe, 2), Catch::Contains("memory.policy: compress"));
  const auto thrown = as_ranks(2, [&](Collectives& group) {
    const Array array(
        model.graph, model.recipe,
        {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5, .group = &group, .shares = Shares::kStages});
  });
  for (const std::string& error : thrown) {
    CHECK_THAT(error, Catch::StartsWith("array: cannot be a pipeline of 2 stages: memory.policy: compress"));
  }
  model.recipe.compression.reset();
  const auto eager = as_ranks(2, [&](Collectives& group) {
    const Array array(
        model.graph, model.recipe,
        {.lowering = chunked(1), .width = 1, .study_seed = 5, .group = &group, .shares = Shares::kStages});
  });
  for (const std::string& error : eager) CHECK_THAT(error, Catch::Contains("wanted one that runs stages"));
}

// A stage of S that take equally long is idle for (S - 1) / (m + S - 1) of a step of m micro-batches (GPipe, section
// 2.3), as it waits while the pipeline fills and drains. Slots need not wait for each other between steps. Here it is
// the part of two cores' time in which the process did not run.
TEST_CASE("print how long stages wait for each other, for docs/devices.md", "[.print]") {
  constexpr std::int64_t kSteps = 15, kBatch = 256, kWide = 512;
  constexpr int kRounds = 5;
  std::vector<LayerSpec> layers = {layer("flatten")};
  for (int l = 0; l < 8; ++l) {
    layers.push_back(layer("linear", {kWide, kWide}));
    layers.push_back(layer("relu"));
  }
  Model model = classifier("mlp", layers, {kWide}, 10, DType::kFloat32, OptimizerKind::kSgd, kBatch);
  model.recipe.clips = false;
  const Setting s = random_setting(std::move(model), 10, {kWide}, {kBatch * kSteps, 3, 17});
  const auto idle = [&](int slots) {
    double part = 0;
    const auto thrown = as_ranks(ranks_in_process(2), [&](Collectives& group) {
      Array array(s.model.graph, s.model.recipe,
                  {.lowering = chunked(kCompiled),
                   .width = slots,
                   .study_seed = 5,
                   .group = &group,
                   .shares = Shares::kStages});
      for (int b = 0; b < slots; ++b) array.admit(b, trial(s.model, b));
      const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
      static_cast<void>(epochs.run(array));
      group.barrier();
      const auto begin = std::chrono::steady_clock::now();
      const std::clock_t ran = std::clock();  // of all threads
      static_cast<void>(epochs.run(array));
      group.barrier();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (group.rank() == 0) {
        part = 1 - static_cast<double>(std::clock() - ran) / CLOCKS_PER_SEC / (2 * took.count());
      }
    });
    for (const std::string& error : thrown) CHECK(error.empty());
    return part;
  };
  for (const int slots : {1, 2, 4, 8}) {
    std::vector<double> parts;
    for (int round = 0; round < kRounds; ++round) parts.push_back(idle(slots));
    std::sort(parts.begin(), parts.end());
    std::cout << fmt::format(
        "{} slots: a stage waits {:.1f} % of the time ({:.1f} to {:.1f}); with a flush after each "
        "step it would wait {:.1f} %\n",
        slots, 100 * parts[kRounds / 2], 100 * parts.front(), 100 * parts.back(), 100.0 / (slots + 1));
  }
}

}  // namespace hfta::fusion::testing
