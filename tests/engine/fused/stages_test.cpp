// Ranks that are the stages of a pipeline: what is refused, what is chosen, what memory they take together.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "engine/fused/choices_json.hpp"
#include "fusion/collectives/shared_memory.hpp"
#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

constexpr const char* kStudy = R"(study: staged
seed: 1
method: random
run_cap: 8
metric: {name: val_loss, goal: minimize}
parameters: {lr: {min: 0.01, max: 0.1}}
model:
  layers:
    - {conv2d: [1, 8, 3], padding: 1}
    - {batch_norm2d: 8}
    - relu
    - {conv2d: [8, 8, 3], padding: 1}
    - relu
    - flatten
    - {linear: [512, 32]}
    - relu
    - {linear: [32, 10]}
data: {name: digits, batch_size: 128, validation: 0.2, test: 0.1}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: adam, lr: "${lr}"}}
array: {width: 4, threads: 1}
)";
const Override kStaged = {"array.divide", "stages"};
const trials::Params kParams = {{"lr", 0.05}};

struct Rank : testing::OneTrainer {
  Rank(const std::vector<Override>& overrides, std::shared_ptr<fusion::Collectives> group,
       const std::filesystem::path& cache = "")
      : OneTrainer(as_rank(testing::options_of(kStudy, overrides), std::move(group), cache)) {
    trainer.check(kParams);
  }
  static TrainerOptions as_rank(TrainerOptions options, std::shared_ptr<fusion::Collectives> group,
                                const std::filesystem::path& cache) {
    options.cache = cache;
    options.group = std::move(group);
    return options;
  }
};

// One of two, which makes no calls to the other.
struct OneOfTwo : Rank {
  explicit OneOfTwo(const std::vector<Override>& overrides, const std::filesystem::path& cache = "")
      : Rank(overrides, std::move(fusion::ranks_in_process(2).front()), cache) {}
};

// What check() says of the study on two ranks; "": nothing.
std::string refusal(const std::vector<Override>& overrides) {
  try {
    const OneOfTwo rank(overrides);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("hfta_stages_" + std::to_string(::getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

// What an array of four trials is after an epoch.
struct Trained {
  std::vector<SlotReport> reports;
  std::map<std::string, double> tested;  // slot 1
  SlotState state;
  nlohmann::json info;
};

Trained trained(FusedTrainer& trainer) {
  const auto array = trainer.open(kParams, 4, 0, never);
  for (int slot = 0; slot < 4; ++slot) array->admit(slot, slot, kParams);
  Trained found;
  found.reports = *array->run_epoch(never);
  found.tested = array->test(1);
  found.state = array->extract(1);
  found.info = nlohmann::json::parse(array->info().choices_json);
  return found;
}

// By rank, in a thread each.
std::vector<Trained> trained_in_stages(int stages, const std::vector<Override>& overrides) {
  std::vector<std::unique_ptr<fusion::Collectives>> groups = fusion::ranks_in_process(stages);
  std::vector<Trained> found(groups.size());
  std::string choices;
  std::vector<std::unique_ptr<Rank>> ranks;
  for (auto& group : groups) {
    Rank& rank = *ranks.emplace_back(std::make_unique<Rank>(overrides, std::move(group)));
    if (ranks.size() == 1) {
      static_cast<void>(rank.trainer.choose(kParams, 0, never));
      const RankPlan plan = plan_of_stages(stages);
      rank.trainer.divide(kParams, {plan.division, {plan}, 4}, never);
      choices = rank.trainer.choose(kParams, 0, never);
    } else {
      CHECK(rank.trainer.recall("", choices).empty());
    }
  }
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(found.size());
  for (std::size_t r = 0; r < found.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        found[r] = trained(ranks[r]->trainer);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return found;
}

}  // namespace

TEST_CASE("stages train what one device does, and hold together what was predicted") {
  const int stages = GENERATE(2, 3);
  std::vector<Override> overrides = {{"memory.policy", GENERATE("auto", "recompute")}};
  if (GENERATE(false, true)) overrides.push_back({"train.clip_norm", "0.1"});
  Rank alone(overrides, nullptr);
  const Trained expected = trained(alone.trainer);
  overrides.push_back(kStaged);
  const std::vector<Trained> found = trained_in_stages(stages, overrides);
  CHECK(found.front().tested == expected.tested);
  for (std::size_t r = 0; r < found.size(); ++r) {
    INFO("rank " << r << " of " << stages);
    REQUIRE(found[r].reports.size() == 4);
    for (std::size_t slot = 0; slot < 4; ++slot) {
      std::map<std::string, double> metrics = expected.reports[slot].metrics;
      if (r > 0) metrics = {{"train_loss", metrics.at("train_loss")}};
      CHECK(found[r].reports[slot].metrics == metrics);
    }
    CHECK(found[r].state == expected.state);
    const auto held = found[r].info["held_bytes"].get<std::int64_t>();
    const auto predicted = found[r].info["predicted"]["bytes"].get<std::int64_t>();
    CHECK(predicted >= held);  // by what is rounded up, for each slot and each arena
    CHECK(predicted - held <= 9);
  }
}

TEST_CASE("a model that cannot be cut into stages is refused, naming why") {
  const std::string begin =
      "array.divide: found stages, wanted auto or slots, as the parts of cpu cannot be the stages "
      "of this model: ";
  CHECK(refusal({kStaged}).empty());
  CHECK(refusal({kStaged, {"model.layers", "[flatten, {linear: [64, 10]}]"}}).starts_with(begin));
  CHECK(refusal({kStaged, {"train.clip_norm", "1"}}).empty());
  CHECK_THAT(refusal({kStaged, {"memory.policy", "compress"}}),
             Catch::StartsWith(begin) && Catch::Contains("compress"));
  CHECK_THAT(refusal({kStaged, {"train.precision", "bfloat16"}}), Catch::StartsWith(begin));
  CHECK_THAT(refusal({{"array.divide", "batches"}}),
             Catch::Contains("wanted auto or slots, as the parts of cpu cannot divide the batches of this model: "));
}

TEST_CASE("stages are neither timed nor remembered, and nothing that was timed for whole models is used for them") {
  const Folder folder;
  const auto how = [](Rank& rank) { return recorded_choices(rank.trainer.choose(kParams, 1000, never))->choices.how; };
  OneOfTwo whole({}, folder.path);
  CHECK(how(whole) == fusion::ChoiceOrigin::kMeasured);
  for (int time = 0; time < 2; ++time) {
    OneOfTwo rank({kStaged}, folder.path);
    CHECK(how(rank) == fusion::ChoiceOrigin::kNotMeasured);
    rank.trainer.divide(kParams, {plan_of_stages(2).division, {plan_of_stages(2)}, 4}, never);
    CHECK(rank.trainer.division(kParams)->chosen == plan_of_stages(2).division);
    const std::vector<MeasuredWay> ways = rank.trainer.measure(kParams, never);
    REQUIRE(ways.size() == 1);
    CHECK(ways.front().lowering.starts_with("compiled"));
    CHECK_FALSE(ways.front().why_not.empty());
  }
  OneOfTwo again({}, folder.path);
  CHECK(how(again) == fusion::ChoiceOrigin::kRemembered);
}

TEST_CASE("a trial that is too large for one rank fits into stages of several") {
  const auto plan_of = [](const std::vector<Override>& overrides) {
    return *OneOfTwo(overrides).trainer.plan(kParams).budget;
  };
  const Override keep = {"memory.policy", "keep"};
  const MemoryPlan whole = plan_of({keep}), stage = plan_of({keep, kStaged});
  CHECK(std::abs(stage.ways.front().need.slot - whole.ways.front().need.slot / 2) <= 1);
  const std::int64_t one = whole.ways.front().need.total(1, 1);
  const Override limit = {"memory.limit", fmt::format("{} B", one - 1)}, width = {"array.width", "auto"};
  CHECK_THAT(refusal({limit, width, keep}), Catch::StartsWith("memory.limit: found "));
  CHECK(refusal({limit, width, keep, kStaged}).empty());
  const Override less = {"memory.limit", fmt::format("{} B", one / 3)};
  CHECK_THAT(refusal({less, width, keep, kStaged}), Catch::StartsWith("memory.limit: found ") &&
                                                        Catch::Contains("one trial takes in each of 2 stages about "));
}

}  // namespace hfta::engine
