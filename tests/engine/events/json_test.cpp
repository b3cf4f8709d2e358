// Events as JSON, and the page that documents them.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/events/event.hpp"
#include "tests/source_folder.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

const BestSoFar kBest{3, 9, 0.5, {{"lr", 0.25}, {"hidden", std::int64_t{64}}}};

Status status() {
  Status s;
  s.round = 4;
  s.planned = 8;
  s.epochs = 12;
  s.best = kBest;
  s.arrays = {{"cpu", "hidden=64", 4, 3}};
  return s;
}

struct Case {
  Event event;
  const char* line;
};

const std::vector<Case> kCases = {
    {RunStarted{"digits", "/tmp/a.db", {{"val_loss", trials::Goal::kMinimize}}, {"cpu"}, true},
     R"({"event":"run_started","study":"digits","storage":"/tmp/a.db","metric":"val_loss","direction":"minimize",)"
     R"("devices":["cpu"],"resumed":true})"},
    {TrialStarted{7, {{"lr", 0.25}, {"deep", true}, {"act", std::string("relu")}, {"none", std::monostate()}}, 1, 2},
     R"({"event":"trial_started","trial":7,"params":{"lr":0.25,"deep":true,"act":"relu","none":null},"array":1,"slot":2})"},
    {EpochEnded{7, 3, {{"train_loss", std::nan("")}, {"val_loss", 0.5}}, std::nan(""), 1, 2},
     R"({"event":"epoch_ended","trial":7,"epoch":3,"metrics":{"train_loss":null,"val_loss":0.5},"value":null,)"
     R"("array":1,"slot":2})"},
    {TrialCopied{7, 4, 3, {{"lr", 0.5}}},
     R"({"event":"trial_copied","trial":7,"epoch":4,"source":3,"params":{"lr":0.5}})"},
    {TrialEnded{7, trials::State::kPruned, {0.5}, ""},
     R"({"event":"trial_ended","trial":7,"state":"PRUNED","value":0.5,"reason":null})"},
    {TrialEnded{7, trials::State::kFail, {}, "train_loss is nan at epoch 3"},
     R"({"event":"trial_ended","trial":7,"state":"FAIL","value":null,"reason":"train_loss is nan at epoch 3"})"},
    {ArrayChanged{1, "cuda:0", "hidden=64", 8, 4, 1},
     R"({"event":"array_changed","array":1,"device":"cuda:0","partition":"hidden=64","width":8,"chunk":4,"threads":1})"},
    {Tested{7, {{"test_loss", 0.5}}}, R"({"event":"tested","trial":7,"metrics":{"test_loss":0.5}})"},
    {Note{"a line\nand \"more\", \xff"}, "{\"event\":\"note\",\"text\":\"a line\\nand \\\"more\\\", \xef\xbf\xbd\"}"},
    {status(),
     R"({"event":"status","round":4,"trials":8,"complete":0,"pruned":0,"failed":0,"running":0,"waiting":0,"epochs":12,)"
     R"("epochs_left":null,"epochs_per_second":null,"seconds":0.0,)"
     R"("best":{"trial":3,"epoch":9,"value":0.5,"params":{"lr":0.25,"hidden":64}},)"
     R"("arrays":[{"device":"cpu","partition":"hidden=64","width":4,"occupied":3}]})"},
    {RunEnded{false, std::nullopt}, R"({"event":"run_ended","finished":false,"best":null})"},
};

// "## `name`" up to the next section.
std::string section_of(const std::string& page, const std::string& name) {
  const std::size_t begin = page.find("## `" + name + "`\n");
  return begin == std::string::npos ? "" : page.substr(begin, page.find("\n## ", begin) - begin);
}

}  // namespace

TEST_CASE("every event is one line of JSON") {
  std::set<std::size_t> kinds;
  for (const Case& c : kCases) {
    CHECK(json::parse(event_json(c.event)) == json::parse(c.line));
    CHECK(event_json(c.event).find('\n') == std::string::npos);
    CHECK(event_json(c.event).rfind("{\"event\":", 0) == 0);
    kinds.insert(c.event.index());
  }
  CHECK(kinds.size() == std::variant_size_v<Event>);
}

TEST_CASE("docs/events.md has every event and every key") {
  std::ifstream file(hfta::testing::source_folder() / "docs/events.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const Case& c : kCases) {
    const json event = json::parse(event_json(c.event));
    const std::string section = section_of(page, event.at("event"));
    for (const auto& [key, value] : event.items()) {
      CAPTURE(event.at("event"), key);
      CHECK((key == "event" || section.find("`" + key + "`") != std::string::npos));
      if (key != "params" && key != "metrics" && value.is_object()) {
        for (const auto& [inner, ignored] : value.items()) CHECK(section.find("`" + inner + "`") != std::string::npos);
      }
    }
    CHECK_FALSE(section.empty());
  }
}

}  // namespace hfta::engine
