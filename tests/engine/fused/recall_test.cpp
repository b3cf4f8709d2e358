// A study that goes on runs its arrays as it did, on the same machine, and pauses between steps.
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/fused/choices_json.hpp"
#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

constexpr const char* kStudy = R"(study: recalled
seed: 1
method: random
run_cap: 8
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {min: 0.01, max: 0.1}
  hidden: {values: [8, 16]}
model:
  layers: [flatten, {linear: [64, "${hidden}"]}, relu, {linear: ["${hidden}", 10]}]
data: {name: digits, batch_size: 256, validation: 0.2}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: sgd, lr: "${lr}"}}
array: {width: 4, threads: 2}
)";

trials::Params params(int hidden) { return {{"lr", 0.05}, {"hidden", std::int64_t{hidden}}}; }

struct Place : testing::OneTrainer {
  explicit Place(const std::vector<Override>& overrides = {}, int sharers = 1)
      : OneTrainer(labelled(testing::options_of(kStudy, overrides, sharers))) {
    trainer.check(params(8));
  }
  static TrainerOptions labelled(TrainerOptions options) {
    if (options.sharers > 1) options.label = "cpu:1";
    return options;
  }
  [[nodiscard]] ArrayInfo info(int width = 4) { return trainer.open(params(8), width, 0, never)->info(); }
};

// As if an earlier run had chosen two slots together for arrays of up to 16.
std::string earlier_choices() {
  ordered_json json = ordered_json::parse(Place().info().choices_json);
  CHECK(json["choices"]["how"] == "not measured");
  json["choices"]["candidates"][0]["lowering"]["compiled"] = false;
  json["choices"]["candidates"][0]["lowering"]["chunk"] = 2;
  json["choices"]["candidates"][0]["wave_seconds"] = 0.5;
  json["choices"]["width"] = 16;
  return json.dump();
}

}  // namespace

TEST_CASE("on a CPU an array of which no width is told is narrow where results matter, and wide elsewhere") {
  struct Case {
    const char* what;
    std::vector<Override> overrides;
    int width;
  };
  const Override any = {"array.width", "auto"}, many = {"run_cap", "200"};
  const std::vector<Case> cases = {
      {"nothing follows from results", {any, many}, 32},
      {"no more than there are trials", {any}, 8},
      {"two for each thread", {any, many, {"method", "tpe"}, {"array.threads", "3"}}, 6},
      {"at least four", {any, many, {"early_stopping", "asha"}, {"array.threads", "1"}}, 4},
      {"two configurations for each thread", {any, many, {"method", "gp"}, {"repeat", "5"}}, 20},
      {"never more than elsewhere", {any, many, {"method", "gp"}, {"repeat", "50"}}, 32},
      {"a width that is told holds", {{"array.width", "24"}, many, {"metric.target", "0.1"}}, 24},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    Place place(c.overrides);
    CHECK(place.trainer.plan(params(8)).width == c.width);
  }
}

TEST_CASE("an array runs as it did in the study so far") {
  const std::string earlier = earlier_choices();
  Place place({{"array.width", "3"}, {"run_cap", "100"}});
  const std::string partition = "hidden=8";
  CHECK(place.trainer.recall(partition, earlier).empty());
  const ArrayInfo info = place.info(3);
  CHECK(info.chunk == 2);
  const auto found = recorded_choices(info.choices_json), expected = recorded_choices(earlier);
  REQUIRE(found);
  CHECK(found->choices.how == fusion::ChoiceOrigin::kRecalled);
  CHECK(found->key == expected->key);
  CHECK(place.trainer.open(params(16), 4, 0, never)->info().chunk == 1);  // another partition
  Place again;                                                            // what was recalled is recalled again
  CHECK(again.trainer.recall(partition, info.choices_json).empty());
  CHECK(again.info(3).choices_json == info.choices_json);
}

TEST_CASE("what was chosen elsewhere is not used, and the user is told") {
  ordered_json other_library = ordered_json::parse(earlier_choices()), other_graph = other_library;
  other_library["choices"]["library"] = "1.0.0";
  other_graph["choices"]["graph"] = "another";
  ordered_json wide = ordered_json::parse(earlier_choices());
  wide["choices"]["candidates"][0]["lowering"]["chunk"] = 2147483647;
  struct Case {
    std::vector<Override> overrides;
    int sharers;
    std::string choices, words;
  };
  const Case cases[] = {
      {{{"array.threads", "3"}}, 1, earlier_choices(), "cpu, hidden=8: the study ran with threads 2 (now 3) before"},
      {{}, 2, earlier_choices(), "cpu:1, hidden=8: the study ran with threads 2 (now 1) before"},
      {{}, 1, other_library.dump(), "LibTorch 1.0.0 (now "},
      {{}, 1, other_graph.dump(), "another graph of the model"},
      {{}, 1, wide.dump(), "chunk 2147483647 in an array of width 16, which no run chooses"},
      {{}, 1, R"({"how": "measured", "lowering": "chunk 2"})", ""},
      {{}, 1, "not even JSON", ""}};
  for (const Case& c : cases) {
    Place place(c.overrides, c.sharers);
    const std::string line = place.trainer.recall("hidden=8", c.choices);
    INFO(line);
    CHECK(line.empty() == c.words.empty());
    CHECK(line.find(c.words) != std::string::npos);
    CHECK((line.empty() || line.find("only up to rounding") != std::string::npos ||
           line.find("measured anew") != std::string::npos));
    CHECK(place.info().chunk == 1);
  }
}

TEST_CASE("ways that nobody runs are not recalled, nor remembered") {
  for (const auto& [key, value] : {std::pair<const char*, ordered_json>{"compiled", true}, {"executor", "nobody"}}) {
    ordered_json json = ordered_json::parse(earlier_choices());  // two slots together
    json["choices"]["candidates"][0]["lowering"][key] = value;
    Place place;
    CHECK(place.trainer.recall("hidden=8", json.dump()).empty());
    CHECK(place.info().chunk == 1);
  }
}

TEST_CASE("choices are of one precision") {
  const auto key_in = [](const std::string& precision) {
    const auto kept = recorded_choices(Place({{"train.precision", precision}}).info().choices_json);
    REQUIRE(kept);
    CHECK((kept->choices.candidates.front().lowering.executor == "compiled") == (precision != "bfloat16"));
    return kept->key;
  };
  const auto plain = recorded_choices(Place().info().choices_json);
  CHECK(key_in("float32") == plain->key);  // whose text is that of stores from before there was a choice
  CHECK(plain->key.graph.starts_with("float32|sgd|"));
  CHECK(key_in("tf32").graph.starts_with("float32 in tf32|sgd|"));
  CHECK(key_in("bfloat16").graph.starts_with("float32 in bfloat16|sgd|"));
}

TEST_CASE("an array's epoch pauses and goes on") {
  Place place;
  const auto array = place.trainer.open(params(8), 2, 0, never);
  for (int b = 0; b < 2; ++b) array->admit(b, b, params(8));
  CHECK_FALSE(array->run_epoch([] { return true; }).has_value());
  int asked = 0;
  const auto other = place.trainer.open(params(8), 1, 0, never);
  other->admit(0, 0, params(8));
  CHECK_FALSE(other->run_epoch([&] { return ++asked == 3; }).has_value());
  const SlotState state = other->extract(0);
  other->clear(0);
  other->insert(0, 0, params(8), state);
  const auto never = [] { return false; };
  const auto whole = array->run_epoch(never), rest = other->run_epoch(never);
  REQUIRE(whole);
  REQUIRE(rest);
  CHECK(whole->size() == 2);
  CHECK(whole->front().metrics == rest->front().metrics);
  CHECK(array->extract(0) == other->extract(0));
}

}  // namespace hfta::engine
