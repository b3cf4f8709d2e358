// Choices as the store has them.
#include "engine/fused/choices_json.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

KeptChoices sample() {
  fusion::Lowering wide;
  wide.chunk = 8;
  wide.channels_last = true;
  wide.families = {{"conv", "unfolded"}, {"linear", "batched"}};
  wide.workers = 2;
  wide.threads_per_worker = 3;
  return {{"cpu Some CPU", "2.11.0", "float32|sgd|mse|batch 8|0123456789abcdef", 16, 6},
          {{{fusion::Lowering(), 0.1}, {wide, 1.0 / 3}}, fusion::ChoiceOrigin::kMeasured, true},
          12345.5};
}

std::string document(const ordered_json& choices) { return ordered_json{{"choices", choices}}.dump(); }

}  // namespace

TEST_CASE("choices come back from their JSON as they were") {
  const KeptChoices kept = sample();
  const auto back = recorded_choices(document(to_json(kept)));
  REQUIRE(back);
  CHECK(back->key == kept.key);
  CHECK(back->slot_steps == kept.slot_steps);
  CHECK(back->choices.how == fusion::ChoiceOrigin::kMeasured);
  CHECK(back->choices.complete);
  REQUIRE(back->choices.candidates.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(back->choices.candidates[i].lowering == kept.choices.candidates[i].lowering);
    CHECK(back->choices.candidates[i].wave_seconds == kept.choices.candidates[i].wave_seconds);
  }
  CHECK(to_json(*back).dump() == to_json(kept).dump());
}

TEST_CASE("how ranks share arrays comes back as well, and what no run wrote is left out") {
  KeptChoices kept = sample();
  RankPlans& plans = kept.ranks.emplace();
  plans.chosen = {Division::Of::kSlots, {2, 1}};
  plans.plans.push_back({plans.chosen, 0.5, 0.25});
  ordered_json json = to_json(kept);
  CHECK(recorded_choices(document(json))->ranks == kept.ranks);
  json["ranks"]["chosen"]["parts"] = std::vector<int>{0, 0};
  CHECK_FALSE(recorded_choices(document(json))->ranks);
  CHECK_FALSE(recorded_choices(document(to_json(sample())))->ranks);
}

TEST_CASE("executors have their names in stores, but for the first two, which have a flag") {
  KeptChoices kept = sample();
  const auto lowering_of = [](const KeptChoices& choices) {
    return to_json(choices)["candidates"][0]["lowering"].dump();
  };
  constexpr const char* kRest = R"("chunk":1,"channels_last":false,"families":{},"workers":1,"threads_per_worker":1)";
  CHECK(lowering_of(kept) == fmt::format(R"({{"compiled":false,{}}})", kRest));
  fusion::Lowering& first = kept.choices.candidates.front().lowering;
  first.executor = "compiled";
  CHECK(lowering_of(kept) == fmt::format(R"({{"compiled":true,{}}})", kRest));
  CHECK(recorded_choices(document(to_json(kept)))->choices.candidates.front().lowering == first);
  first.executor = "another";
  CHECK(lowering_of(kept) == fmt::format(R"({{"compiled":false,{},"executor":"another"}})", kRest));
  CHECK(recorded_choices(document(to_json(kept)))->choices.candidates.front().lowering == first);
  ordered_json old = to_json(sample());  // of 0.1
  old["candidates"][0]["lowering"].erase("compiled");
  CHECK(recorded_choices(document(old))->choices.candidates.front().lowering == fusion::Lowering());
}

TEST_CASE("what is computed again, and the memory that this was chosen for, are kept") {
  KeptChoices kept = sample();
  CHECK(to_json(kept).dump().find("memory") == std::string::npos);  // as stores were before there was a choice
  CHECK(to_json(kept).dump().find("recompute") == std::string::npos);
  kept.choices.candidates.front().lowering.recompute = 2;
  kept.key.memory = "recompute";
  const auto back = recorded_choices(document(to_json(kept)));
  REQUIRE(back);
  CHECK(back->choices.candidates.front().lowering == kept.choices.candidates.front().lowering);
  CHECK(back->key == kept.key);
  CHECK(kept.key.to_text() == sample().key.to_text() + "|memory recompute");
}

TEST_CASE("what are no choices is none, old records too") {
  for (const char* text : {"", "{", "[]", "3", "null", "{}", R"({"choices": 3})", R"({"choices": {}})",
                           R"({"how": "measured", "lowering": "chunk 1", "wave_ms": {"chunk 1": 2.5}})"}) {
    INFO(text);
    CHECK_FALSE(recorded_choices(text));
  }
  const ordered_json whole = to_json(sample());
  for (const char* text : {"-1", "3000000000", "\"2\"", "0.5"}) {
    INFO(text);
    ordered_json broken = whole;
    broken["candidates"][1]["lowering"]["recompute"] = ordered_json::parse(text);
    CHECK_FALSE(recorded_choices(document(broken)));
  }
  for (const auto& [key, value] : whole.items()) {
    INFO(key);
    ordered_json without = whole;
    without.erase(key);
    CHECK_FALSE(recorded_choices(document(without)));
    ordered_json other = whole;
    other[key] = ordered_json::object();
    CHECK_FALSE(recorded_choices(document(other)));
  }
  for (const char* key : {"chunk", "workers", "threads_per_worker"}) {
    ordered_json broken = whole;
    broken["candidates"][1]["lowering"][key] = 0;
    CHECK_FALSE(recorded_choices(document(broken)));
  }
  ordered_json none = whole;
  none["candidates"] = ordered_json::array();
  CHECK_FALSE(recorded_choices(document(none)));
}

TEST_CASE("a number that is no int is no choice") {
  for (const char* number : {"60e22", "2.0", "2147483648", "-2147483649", "18446744073709551615", "1e999"}) {
    INFO(number);
    std::string text = document(to_json(sample()));
    const std::string width = R"("width":16)";
    text.replace(text.find(width), width.size(), R"("width":)" + std::string(number));
    CHECK_FALSE(recorded_choices(text));
  }
}

TEST_CASE("numbers that no run would choose are told, and bounded by the array and its threads") {
  const auto [key, value, words] = GENERATE(table<std::string, std::int64_t, std::string>(
      {{"chunk", 16, ""},
       {"chunk", 17, "chunk 17 in an array of width 16"},
       {"chunk", 2147483647, "chunk 2147483647 in an array of width 16"},
       {"workers", 20000, "20000 x 3 threads of 6"},
       {"threads_per_worker", 4, "2 x 4 threads of 6"},
       {"threads_per_worker", 2147483647, "2 x 2147483647 threads of 6"}}));
  ordered_json changed = to_json(sample());
  changed["candidates"][1]["lowering"][key] = value;
  const auto kept = recorded_choices(document(changed));
  REQUIRE(kept);
  CHECK(beyond_bounds(*kept) == words);
  for (const char* field : {"width", "threads"}) {
    ordered_json wide = to_json(sample());
    wide[field] = 1000000;
    CHECK_FALSE(beyond_bounds(*recorded_choices(document(wide))).empty());
  }
}

TEST_CASE("what differs is named") {
  const ChoiceKey before = sample().key;
  struct Case {
    ChoiceKey now;
    const char* words;
  };
  const Case cases[] = {
      {before, ""},
      {{before.device, before.library, before.graph, 99, before.threads}, ""},
      {{before.device, before.library, "", 16, before.threads}, ""},
      {{"cpu Other", before.library, before.graph, 16, 6}, "device cpu Some CPU (now cpu Other)"},
      {{before.device, "2.12.0", before.graph, 16, 2}, "LibTorch 2.11.0 (now 2.12.0), threads 6 (now 2)"},
      {{before.device, before.library, before.graph, 16, 6, "keep"}, "memory auto (now keep)"},
      {{before.device, before.library, "x", 16, 6}, "another graph of the model"}};
  for (const Case& c : cases) CHECK(difference_of(before, c.now) == c.words);
}

}  // namespace hfta::engine
