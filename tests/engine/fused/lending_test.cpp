// Arrays that are lent threads train the same bits, say that they run as on their own, and keep to the limit of memory.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

constexpr const char* kStudy = R"(study: lent
method: random
run_cap: 8
metric: {name: val_loss, goal: minimize}
parameters: {lr: {min: 0.01, max: 0.1}}
model:
  layers:
    - {conv2d: [1, 32, 3], padding: 1, bias: false}
    - {batch_norm2d: 32}
    - relu
    - {conv2d: [32, 32, 3], padding: 1, bias: false}
    - relu
    - flatten
    - {dropout: 0.2}
    - {linear: [2048, 10]}
data: {name: digits, batch_size: 256, validation: 0.1}
train: {epochs: 4, loss: cross_entropy, optimizer: {name: sgd, lr: "${lr}", momentum: 0.9}}
array: {threads: 1}
)";

trials::Params params(int slot) { return {{"lr", 0.02 + 0.01 * slot}}; }

struct Place : testing::OneTrainer {
  explicit Place(const std::vector<Override>& overrides = {}, int threads = 1)
      : OneTrainer(options_on(threads, overrides)) {
    trainer.check(params(0));
  }
  static TrainerOptions options_on(int threads, const std::vector<Override>& overrides) {
    TrainerOptions options = testing::options_of(kStudy, overrides);
    options.threads = threads;
    return options;
  }
  [[nodiscard]] std::unique_ptr<TrainerArray> filled(int width) {
    auto array = trainer.open(params(0), width, 0, never);
    for (int slot = 0; slot < width; ++slot) array->admit(slot, slot, params(slot));
    return array;
  }
};

std::vector<SlotState> states_of(TrainerArray& array, int width) {
  std::vector<SlotState> states;
  for (int slot = 0; slot < width; ++slot) states.push_back(array.extract(slot));
  return states;
}

// What decides how a study that goes on runs its arrays.
json choices_of(const TrainerArray& array) {
  json all = json::parse(array.info().choices_json);
  all.erase("held_bytes");
  return all;
}

std::int64_t held_by(const TrainerArray& array) {
  return json::parse(array.info().choices_json)["held_bytes"].get<std::int64_t>();
}

}  // namespace

TEST_CASE("slots train to the same bits whatever threads they are lent, from epoch to epoch and within one") {
  const int width = GENERATE(1, 2, 3);
  const int threads = GENERATE(1, 2);
  CAPTURE(width, threads);
  Place place({}, threads);
  const auto alone = place.filled(width), lent = place.filled(width);
  REQUIRE(lent->can_borrow());
  const json choices = choices_of(*lent);
  for (const int more : {1, 3, 0, 2}) {
    const auto expected = alone->run_epoch(never);
    int asked = 0;
    REQUIRE_FALSE(lent->run_epoch([&] { return ++asked == 3; }).has_value());
    lent->borrow(more);
    const auto reports = lent->run_epoch(never);
    REQUIRE(reports);
    for (std::size_t i = 0; i < reports->size(); ++i) CHECK((*reports)[i].metrics == (*expected)[i].metrics);
    CHECK(choices_of(*lent) == choices);
  }
  CHECK((states_of(*lent, width) == states_of(*alone, width)));
}

TEST_CASE("what may come to other bits by other threads borrows none") {
  Place place(std::vector<Override>{{"train.precision", "bfloat16"}});  // which is not compiled
  CHECK_FALSE(place.filled(2)->can_borrow());
}

TEST_CASE("a limit of memory holds with lent threads too") {
  Place free;
  const MemoryNeed need = *free.trainer.plan(params(0)).memory;
  // Two slots, of which one works at a time; nearly another one; all that two need.
  for (const double share : {0.2, 0.9, 1.2}) {
    const std::int64_t limit =
        need.total(2, 1) + static_cast<std::int64_t>(share * static_cast<double>(need.activations));
    Place place({{"memory.limit", fmt::format("{} B", limit)}, {"array.width", "2"}, {"memory.policy", "keep"}});
    const auto array = place.filled(2);
    static_cast<void>(array->run_epoch(never));
    const std::int64_t own = held_by(*array);
    array->borrow(1);
    static_cast<void>(array->run_epoch(never));
    INFO(share << ": " << held_by(*array) << " of " << limit << ", " << own << " by itself");
    CHECK(held_by(*array) <= limit);
    CHECK((held_by(*array) - own > need.activations / 2) == (share > 1));
    array->borrow(0);
    static_cast<void>(array->run_epoch(never));
    CHECK(held_by(*array) == own);
  }
}

}  // namespace hfta::engine
