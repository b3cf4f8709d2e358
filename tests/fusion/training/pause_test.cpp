// Where an epoch is paused changes no bit of what follows.
#include <atomic>
#include <bit>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "fusion/array/progress.hpp"
#include "tests/fusion/array/adversarial.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 19;  // 4 steps an epoch, the last of one sample
constexpr int kWidth = 4, kEpochs = 2;

Setting setting(Model model, std::int64_t classes, const Shape& input) {
  return random_setting(std::move(model), classes, input, {kSamples, kEpochs, 31});
}

std::vector<LayerSpec> convolution_and_head() {
  return {layer("conv2d", {std::int64_t{1}, std::int64_t{4}, std::int64_t{3}}),
          layer("batch_norm2d", {std::int64_t{4}}),
          layer("relu"),
          layer("flatten"),
          layer("dropout", {0.2}),
          layer("linear", {std::int64_t{144}, std::int64_t{5}})};
}

// Dropout, batch norm, momentum, parameter groups, a frozen backbone, steps by several batches, and phases.
std::vector<Setting> settings() {
  Model dropout = classifier("dropout, batch norm, sgd", convolution_and_head(), {1, 8, 8}, 5, DType::kFloat32);
  Model adam = mlp(DType::kFloat32, OptimizerKind::kAdamW);
  Model frozen = classifier("frozen backbone", convolution_and_head(), {1, 8, 8}, 5, DType::kFloat32);
  for (Weight& weight : frozen.graph.weights) weight.trained = weight.trained && weight.name.find("layers.5") == 0;
  return {setting(dropout, 5, {1, 8, 8}), setting(accumulating(dropout), 5, {1, 8, 8}),
          setting(in_groups(std::move(adam)), 4, {3, 4}), setting(std::move(frozen), 5, {1, 8, 8}),
          adversarial_setting(DType::kFloat32, OptimizerKind::kRmsprop, {kSamples + 1, kEpochs, 31})};
}

SlotInit scheduled(const Model& model, int b) {
  SlotInit init = trial(model, b);
  init.hyper.schedule.kind = ScheduleKind::kCosine;
  init.hyper.schedule.per_step = b % 2 == 0;
  return init;
}

Array array_of(const Setting& s, int chunk, int workers = 1) {
  return {s.model.graph, s.model.recipe, {.lowering = chunked(chunk, {}, workers), .width = kWidth, .study_seed = 5}};
}

/// Results and final states, by slot.
struct Outcome {
  std::vector<std::vector<std::map<std::string, double>>> curves{kWidth};
  std::vector<StateBytes> states;
  bool operator==(const Outcome&) const = default;

  void add(const std::vector<EpochResult>& results) {
    for (const EpochResult& r : results) {
      curves[static_cast<std::size_t>(r.slot)].push_back(r.metrics);
      CHECK(r.epoch == static_cast<int>(curves[static_cast<std::size_t>(r.slot)].size()));
    }
  }
  void take_states(Array& array) {
    for (int b = 0; b < kWidth; ++b) states.push_back(array.extract(b));
  }
};

Outcome unpaused(const Setting& s, int chunk) {
  Array array = array_of(s, chunk);
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  for (int b = 0; b < kWidth; ++b) array.admit(b, scheduled(s.model, b));
  Outcome outcome;
  for (int e = 0; e < kEpochs; ++e) outcome.add(epochs.run(array));
  outcome.take_states(array);
  return outcome;
}

/// True at the `after`-th question, once.
Pause at_question(int after) {
  return [asked = std::make_shared<std::atomic<int>>(0), after] { return asked->fetch_add(1) == after; };
}

void move_all(Array& from, Array& to, const Setting& s) {
  for (int b = 0; b < kWidth; ++b) {
    const StateBytes state = from.extract(b);
    from.clear(b);
    to.insert(b, scheduled(s.model, b), state);
    CHECK(to.extract(b) == state);
  }
}

}  // namespace

TEST_CASE("an epoch that is paused at any step goes on bit for bit, here and in another array") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 2, 4);
  for (const Setting& s : settings()) {
    INFO(s.model.name << ", chunk " << chunk);
    const Outcome expected = unpaused(s, chunk);
    const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
    int questions = 0;
    for (bool paused = true; paused; ++questions) {
      for (const bool elsewhere : {false, true}) {
        INFO("paused at question " << questions << (elsewhere ? ", moved" : ""));
        Array first = array_of(s, chunk), second = array_of(s, chunk);
        for (int b = 0; b < kWidth; ++b) first.admit(b, scheduled(s.model, b));
        Array* array = &first;
        Outcome outcome;
        const auto whole = epochs.run(first, at_question(questions));
        paused = !whole;
        if (whole) {
          outcome.add(*whole);
        } else {
          if (elsewhere) move_all(first, second, s);
          if (elsewhere) array = &second;
          outcome.add(epochs.run(*array));
        }
        outcome.add(epochs.run(*array));
        outcome.take_states(*array);
        CHECK((outcome == expected));
      }
    }
    // Every step of every chunk, or of all together where they share layers, and the evaluation.
    const bool together = s.model.name == "frozen backbone" && chunk != kCompiled;
    const int chunks = together ? 1 : kWidth / std::max(chunk, 1);
    CHECK(questions == 4 * chunks + 1 + 1);
  }
}

TEST_CASE("paused again and again, on several threads") {
  for (const Setting& s : settings()) {
    const int chunk = 2;
    INFO(s.model.name);
    const Outcome expected = unpaused(s, chunk);
    const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
    Array array = array_of(s, chunk, 2);
    for (int b = 0; b < kWidth; ++b) array.admit(b, scheduled(s.model, b));
    Outcome outcome;
    for (int e = 0, calls = 0; e < kEpochs; ++calls) {
      REQUIRE(calls < 50);
      const auto whole = epochs.run(array, at_question(1 + calls % 2));
      if (!whole) continue;
      outcome.add(*whole);
      ++e;
    }
    outcome.take_states(array);
    CHECK((outcome == expected));
  }
}

TEST_CASE("slots that were paused at different places share an array") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 2, 4);
  for (const Setting& s : settings()) {
    INFO(s.model.name << ", chunk " << chunk);
    const Outcome expected = unpaused(s, chunk);
    const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
    Array array = array_of(s, chunk);
    for (int b = 0; b < kWidth; ++b) {
      // Each by itself, b of them to its place: 3, 4 (before its evaluation), 0, 1.
      Array source = array_of(s, chunk);
      source.admit(b, scheduled(s.model, b));
      const int place = (b + 3) % 5 % 4 + (b == 1 ? 4 : 0);
      REQUIRE_FALSE(epochs.run(source, at_question(place)).has_value());
      CHECK(source.progress(b).epoch_step == place);
      // States of earlier builds do not say what their batches weighed.
      const double unknown = std::numeric_limits<double>::quiet_NaN();
      std::vector<double> sums = {source.progress(b).epoch_loss, unknown};
      for (const PhaseProgress& phase : source.progress(b).later) {
        sums.insert(sums.end(), {phase.epoch_loss, phase.epoch_weight});
      }
      if (b % 2 == 0) source.pause_epoch(b, place, sums);
      array.insert(b, scheduled(s.model, b), source.extract(b));
    }
    Outcome outcome;
    if (const auto whole = epochs.run(array, at_question(1))) outcome.add(*whole);
    for (int b = 0; b < kWidth; ++b) CHECK(array.occupied(b));
    while (outcome.curves[0].size() < kEpochs) outcome.add(epochs.run(array));
    outcome.take_states(array);
    CHECK((outcome == expected));
  }
}

TEST_CASE("the place in an epoch is saved exactly, and absent between epochs") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double loss : {0.1 + 0.2, -0.0, 1e-320, std::numeric_limits<double>::infinity(), nan}) {
    const SlotProgress back = progress_from(counters_of({17, 3, 2, loss, -loss}));
    CHECK(back.step == 17);
    CHECK(back.epoch == 3);
    CHECK(back.epoch_step == 2);
    CHECK(std::bit_cast<std::uint64_t>(back.epoch_loss) == std::bit_cast<std::uint64_t>(loss));
    CHECK(std::bit_cast<std::uint64_t>(back.epoch_weight) == std::bit_cast<std::uint64_t>(-loss));
  }
  CHECK(counters_of({17, 3}) == std::map<std::string, std::string>{{"epoch", "3"}, {"step", "17"}});
  const std::string bits_of_one = "3ff0000000000000";
  CHECK(std::isnan(
      progress_from({{"step", "1"}, {"epoch", "0"}, {"epoch_step", "1"}, {"epoch_loss", bits_of_one}}).epoch_weight));
  for (const char* bits : {"", "0", "3fg9999999999999", "3FB999999999999A", "3fb999999999999a0"}) {
    CHECK_THROWS_WITH(progress_from({{"step", "1"}, {"epoch", "0"}, {"epoch_step", "1"}, {"epoch_loss", bits}}),
                      Catch::Contains("epoch_loss"));
  }
}

TEST_CASE("a slot behind the end of its epoch is refused, and nobody is lost") {
  const Setting s = settings()[1];
  Array array = array_of(s, 2);
  array.admit(0, scheduled(s.model, 0));
  array.admit(1, scheduled(s.model, 1));
  array.pause_epoch(1, 5, std::vector{0.0, 0.0});
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  CHECK_THROWS_WITH(epochs.run(array), Catch::Contains("epoch_step': found 5, wanted at most 4"));
  CHECK(array.occupied(1));
}

}  // namespace hfta::fusion::testing
