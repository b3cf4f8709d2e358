// How ranks share arrays: what a study that goes on keeps of it and tells, and what this machine remembers.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/fused/choices_json.hpp"
#include "fusion/collectives/shared_memory.hpp"
#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

constexpr const char* kStudy = R"(study: shared
seed: 1
method: random
run_cap: 8
metric: {name: val_loss, goal: minimize}
parameters: {lr: {min: 0.01, max: 0.1}}
model:
  layers: [flatten, {linear: [64, 16]}, relu, {linear: [16, 16]}, relu, {linear: [16, 10]}]
data: {name: digits, batch_size: 256, validation: 0.2}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: sgd, lr: "${lr}"}}
array: {width: 4, threads: 2}
)";
const Override kBatchNorm = {"model.layers", "[flatten, {batch_norm1d: 64}, {linear: [64, 10]}]"};
const trials::Params kParams = {{"lr", 0.05}};

const Division kEven{Division::Of::kBatches, {1, 1}}, kUneven{Division::Of::kBatches, {2, 1}},
    kSlots{Division::Of::kSlots, {2, 2}}, kStages{Division::Of::kStages, {1, 1}};

// One of `ranks`, which makes no calls to the others.
struct Rank : testing::OneTrainer {
  explicit Rank(int ranks, std::vector<Override> overrides = {}, const std::filesystem::path& cache = "", int rank = 0)
      : OneTrainer(as_rank(testing::options_of(kStudy, overrides), ranks, cache, rank)) {
    trainer.check(kParams);
  }
  static TrainerOptions as_rank(TrainerOptions options, int ranks, const std::filesystem::path& cache, int rank) {
    options.cache = cache;
    if (ranks > 1) options.group = std::move(fusion::ranks_in_process(ranks)[static_cast<std::size_t>(rank)]);
    return options;
  }
  [[nodiscard]] std::string choose() { return trainer.choose(kParams, 0, never); }
};

// Of a study that shared its arrays so.
std::string choices(const std::optional<Division>& division, const std::vector<Override>& overrides = {}) {
  ordered_json json = ordered_json::parse(Rank(1, overrides).choose());
  if (division) json["choices"]["ranks"] = to_json(RankPlans{*division, {{*division, 1, 1}}, 4});
  return json.dump();
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hfta_divisions_" + std::to_string(::getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a study keeps how its batches were divided, and its stages, or says that it does not") {
  const std::string rounding = " before; results from now on agree with it only up to rounding",
                    in_stages = "cpu: the study trained in 2 stages" + rounding,
                    not_in_stages = "cpu: the study did not train in stages" + rounding;
  const std::string divided =
                        "cpu: the study divided its batches among 2 ranks before; results from now on agree with "
                        "it only up to rounding",
                    whole =
                        "cpu: the study did not divide its batches before; results from now on agree with it only "
                        "up to rounding";
  struct Case {
    std::optional<Division> before;
    int ranks;
    const char* divide;
    std::string line;
    bool known, keeps_whole;
  };
  const Case cases[] = {
      {kEven, 2, "auto", "", true, false},
      {kEven, 2, "batches", "", true, false},
      {kEven, 2, "batches_evenly", "", true, false},
      {kUneven, 2, "batches_evenly", divided, false, false},
      {kEven, 2, "slots", divided, false, false},
      {kEven, 3, "auto", divided, false, false},
      {kEven, 1, "auto", divided, false, false},
      {kSlots, 2, "auto", "", true, true},
      {kSlots, 2, "batches", whole, false, true},
      {kSlots, 3, "auto", "", false, true},
      {kSlots, 1, "batches", "", false, true},
      {{}, 2, "auto", "", false, true},
      {{}, 2, "slots", "", false, true},
      {{}, 2, "batches_evenly", whole, false, true},
      {{}, 1, "auto", "", false, true},
      {kStages, 2, "stages", "", true, true},
      {kStages, 3, "stages", in_stages, false, false},
      {kStages, 2, "auto", in_stages, false, false},
      {kStages, 1, "auto", in_stages, false, false},
      {kSlots, 2, "stages", not_in_stages, false, false},
      {kEven, 2, "stages", not_in_stages, false, false},
      {{}, 2, "stages", not_in_stages, false, false},
  };
  for (const Case& c : cases) {
    Rank rank(c.ranks, {{"array.divide", c.divide}});
    INFO((c.before ? c.before->to_text() : "none") << " before, now " << c.divide << " on " << c.ranks);
    CHECK(rank.trainer.recall("", choices(c.before)) == c.line);
    const std::optional<RankPlans> known = rank.trainer.division(kParams);
    CHECK(known.has_value() == c.known);
    if (known) CHECK(known->chosen == *c.before);
    CHECK(rank.trainer.kept_batches_whole(kParams) == c.keeps_whole);
  }
  Rank member(2, {{"array.divide", "batches"}}, "", 1);
  CHECK(member.trainer.recall("", choices({})).empty());  // rank 0 has said it
  CHECK_FALSE(Rank(2).trainer.kept_batches_whole(kParams));
}

TEST_CASE("a division that these data cannot have is not known") {
  Rank rank(2, {kBatchNorm});
  CHECK(rank.trainer.recall("", choices(kEven, {kBatchNorm})).empty());
  CHECK_FALSE(rank.trainer.division(kParams));
}

TEST_CASE("a machine remembers how ranks share by what was asked for, and not what was cut short or recalled") {
  const RankPlans slots{kSlots, {{kSlots, 1, 1}, {kEven, 1, 0}}, 4}, all{kSlots, {{kSlots, 1, 1}, {kEven, 1, 2}}, 4};
  struct Case {
    const char* what;
    RankPlans plans;
    bool recalled, cut_short;
    const char* divide;
    int ranks;
    bool known;
  };
  const Case cases[] = {
      {"all were tried", all, false, false, "auto", 2, true},
      {"by other ranks", all, false, false, "auto", 3, false},
      {"only slots were, as now", slots, false, false, "slots", 2, true},
      {"only slots were", slots, false, false, "auto", 2, false},
      {"another kind was chosen", all, false, false, "batches", 2, false},
      {"cut short", all, false, true, "auto", 2, false},
      {"of a study that goes on", all, true, false, "auto", 2, false},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const Folder folder;
    Rank first(2, {}, folder.path);
    if (c.recalled) CHECK(first.trainer.recall("", choices({})).empty());
    static_cast<void>(first.choose());
    first.trainer.divide(kParams, c.plans, [&] { return c.cut_short; });
    CHECK(first.trainer.division(kParams) == c.plans);
    Rank next(c.ranks, {{"array.divide", c.divide}}, folder.path);
    static_cast<void>(next.choose());
    CHECK(next.trainer.division(kParams).has_value() == c.known);
  }
}

TEST_CASE("measuring the ways to run leaves what is remembered of ranks") {
  const Folder folder;
  const RankPlans plans{kEven, {{kSlots, 1, 2}, {kEven, 1, 1}}, 4};
  {
    Rank rank(2, {}, folder.path);
    static_cast<void>(rank.choose());
    rank.trainer.divide(kParams, plans, never);
  }
  static_cast<void>(Rank(1, {}, folder.path).trainer.measure(kParams, never));
  Rank rank(2, {}, folder.path);
  static_cast<void>(rank.choose());
  CHECK(rank.trainer.division(kParams) == plans);
}

TEST_CASE("parts of a batch are timed only where batches can be divided") {
  Rank rank(2);
  static_cast<void>(rank.choose());
  for (const bool batches : {false, true}) {
    const RankTimes times = rank.trainer.rank_times(kParams, 2, batches);
    CHECK(times.of_slots.size() == 2);
    CHECK(times.of_samples.size() == (batches ? 3 : 1));
    CHECK(times.of_samples.rbegin()->first == 256);
  }
}

}  // namespace hfta::engine
