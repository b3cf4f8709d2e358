// A study keeps to its memory.limit, whatever the policy, and trains the same bits.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

constexpr const char* kStudy = R"(study: limited
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
    - {batch_norm2d: 32}
    - relu
    - {conv2d: [32, 32, 3], padding: 1, bias: false}
    - {batch_norm2d: 32}
    - relu
    - flatten
    - {linear: [2048, 10]}
data: {name: digits, batch_size: 256, validation: 0.1}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: sgd, lr: "${lr}", momentum: 0.9}}
array: {threads: 2}
)";

const trials::Params kParams = {{"lr", 0.05}};

struct Place : testing::OneTrainer {
  explicit Place(const std::vector<Override>& overrides, int sharers = 1) : OneTrainer(shared(overrides, sharers)) {}
  static TrainerOptions shared(const std::vector<Override>& overrides, int sharers) {
    TrainerOptions options = testing::options_of(kStudy, overrides, sharers);
    options.threads = 2;
    return options;
  }
};

Override limit_of(std::int64_t bytes) { return {"memory.limit", fmt::format("{} B", bytes)}; }

// Ways of the plan without a limit, from the one that needs most.
MemoryPlan free_plan() {
  Place place({});
  return *place.trainer.plan(kParams).budget;
}

std::string refusal(const std::vector<Override>& overrides) {
  try {
    Place(overrides).trainer.check(kParams);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("without a limit all is kept") {
  const MemoryPlan plan = free_plan();
  CHECK(plan.plenty);
  REQUIRE(plan.ways.size() >= 4);  // keep and recompute, by two threads or a team
  CHECK(plan.ways[0].lowering == "compiled, 2 x 1 threads");
  for (std::size_t i = 0; i < plan.ways.size(); ++i) CHECK(plan.ways[i].open == (i == 0));
  CHECK(plan.ways[2].need.activations < plan.ways[0].need.activations);
}

TEST_CASE("arrays hold what was predicted, and no more than the limit, at every limit") {
  const MemoryPlan all = free_plan();
  const std::int64_t most = all.ways.front().need.total(8, 2), least = all.ways.back().need.total(1, 1);
  const std::string policy = GENERATE("auto", "keep", "recompute");
  for (const double share : {0.02, 0.2, 0.5, 0.9, 1.1}) {
    const std::int64_t limit = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    INFO(policy << " within " << limit << " of " << most);
    const std::vector<Override> overrides = {limit_of(limit), {"memory.policy", policy}};
    if (policy == "keep" && limit < all.ways.front().need.total(1, 1)) {
      CHECK_THAT(refusal(overrides), Catch::Contains("with policy recompute "));
      continue;
    }
    Place place(overrides);
    place.trainer.check(kParams);
    const PartitionPlan plan = place.trainer.plan(kParams);
    CHECK(plan.bytes(plan.width) <= limit);
    const auto array = place.trainer.open(kParams, plan.width, 0, never);
    for (int slot = 0; slot < plan.width; ++slot) array->admit(slot, slot, kParams);
    static_cast<void>(array->run_epoch(never));
    const auto record = nlohmann::json::parse(array->info().choices_json);
    const auto held = record["held_bytes"].get<std::int64_t>();
    CHECK(held <= limit);
    CHECK(held == record["predicted"]["bytes"].get<std::int64_t>());
    const bool recomputes = record["lowering"].get<std::string>().find("recompute") != std::string::npos;
    if (policy != "auto") CHECK(recomputes == (policy == "recompute"));
  }
}

TEST_CASE("what evaluation works in counts, where its batches are larger") {
  const std::vector<Override> overrides = {{"data.batch_size", "8"}, {"run_cap", "2"}};
  Place place(overrides);
  place.trainer.check(kParams);
  const auto array = place.trainer.open(kParams, 2, 0, never);
  for (int slot = 0; slot < 2; ++slot) array->admit(slot, slot, kParams);
  const auto held = [&] { return nlohmann::json::parse(array->info().choices_json)["held_bytes"].get<std::int64_t>(); };
  const std::int64_t before = held();
  static_cast<void>(array->run_epoch(never));
  CHECK(held() > before);
  CHECK(held() == place.trainer.plan(kParams).bytes(2));
}

TEST_CASE("a trial's bits depend on neither policy nor limit") {
  const MemoryPlan all = free_plan();
  std::vector<SlotState> states;
  for (const std::vector<Override>& overrides : {std::vector<Override>{},
                                                 {{"memory.policy", "recompute"}},
                                                 {limit_of(all.ways[1].need.total(8, 1))},
                                                 {limit_of(all.ways.back().need.total(1, 1))}}) {
    Place place(overrides);
    place.trainer.check(kParams);
    const auto array = place.trainer.open(kParams, place.trainer.plan(kParams).width, 0, never);
    array->admit(0, 3, kParams);
    // It is paused on the way, and moved.
    int asked = 0;
    static_cast<void>(array->run_epoch([&] { return ++asked == 3; }));
    const SlotState half = array->extract(0);
    array->clear(0);
    array->insert(0, 3, kParams, half);
    static_cast<void>(array->run_epoch(never));
    states.push_back(array->extract(0));
    CHECK(states.back() == states.front());
  }
}

TEST_CASE("a limit is divided among those who share the CPU") {
  const std::int64_t most = free_plan().ways.front().need.total(8, 2);
  Place place({limit_of(2 * most)}, 2);
  CHECK(place.trainer.plan(kParams).budget->limit == most);
}

TEST_CASE("a limit that nothing fits is told with what would") {
  const MemoryPlan all = free_plan();
  const std::string text = refusal({limit_of(all.ways.back().need.total(1, 1) - 1)});
  CHECK_THAT(text, Catch::StartsWith("memory.limit: found ") && Catch::Contains("for a batch of 256 samples") &&
                       Catch::Contains("a batch of 128 would fit"));
  CHECK_THAT(refusal({limit_of(1000)}), !Catch::Contains("would fit"));
  CHECK_THAT(refusal({limit_of(all.ways.back().need.total(2, 1)), {"array.width", "8"}}),
             Catch::StartsWith("array.width: found 8, wanted auto or at most 2, which fit into memory.limit"));
  CHECK_THAT(refusal({{"memory.policy", "recompute"}, {"train.precision", "bfloat16"}}),
             Catch::StartsWith("memory.policy: found recompute, wanted auto or keep; compiled: "));
}

TEST_CASE("a study that goes on computes again what it did before") {
  const std::vector<Override> overrides = {{"memory.policy", "recompute"}};
  Place first(overrides), second(overrides), other({});
  for (Place* place : {&first, &second, &other}) place->trainer.check(kParams);
  const std::string record = first.trainer.open(kParams, 4, 0, never)->info().choices_json;
  CHECK(second.trainer.recall("", record).empty());
  const auto found = nlohmann::json::parse(second.trainer.open(kParams, 4, 0, never)->info().choices_json);
  CHECK(found["choices"]["how"] == "recalled");
  CHECK(found["lowering"] == nlohmann::json::parse(record)["lowering"]);
  CHECK(found["lowering"].get<std::string>().find("recompute") != std::string::npos);
  CHECK_THAT(other.trainer.recall("", record), Catch::Contains("memory recompute (now auto)"));
}

}  // namespace hfta::engine
