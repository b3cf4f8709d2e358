// model: {file: ...}

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

const trials::Params kParams = {{"lr", 0.5}, {"drop", 0.25}, {"hidden", std::int64_t{64}}};
const std::string kFreeze = R"(  freeze: "${hidden}.*"
)";

TEST_CASE("an exported model, typed") {
  const StudyConfig config = parsed(kExported);
  CHECK(config.warnings.empty());
  CHECK(config.shape_changing == std::set<std::string>{"hidden"});
  const TaskSpec task = config.task(kParams);
  CHECK(task.layers.empty());
  REQUIRE(task.model_file);
  CHECK(task.model_file->file == config.folder / "m.pt2");
  CHECK(task.model_file->name == "m.pt2");
  const fusion::ImportOptions& import = task.model_file->import;
  CHECK(import.where == "s.yaml:12: model");
  CHECK(import.freeze == std::vector<std::string>{"64.*"});
  REQUIRE(import.bind.size() == 2);
  CHECK(import.bind[0].path == "head.drop.p");
  CHECK(import.bind[0].value == 0.25);
  CHECK(import.bind[0].where == "s.yaml:14: model.bind");
  CHECK(import.bind[1].path == "block.*.p");
  CHECK(import.bind[1].value == 0.5);
  CHECK_FALSE(import.fresh);
  CHECK(import.output.index() == 0);
  CHECK(import.dtype == fusion::DType::kFloat32);
}

TEST_CASE("forms of the keys of an exported model") {
  const auto import = [](const std::vector<Change>& changes, const std::vector<Override>& overrides = {}) {
    return parsed(changed(changes, kExported), overrides).task(kParams).model_file->import;
  };
  using Words = std::vector<std::string>;
  CHECK(import({{kFreeze, "  freeze: [a.*, \"${hidden}\"]\n"}}).freeze == Words{"a.*", "64"});
  CHECK(import({{kFreeze, "  freeze: ~\n"}}).freeze.empty());
  CHECK(import({{kFreeze, ""}}).freeze.empty());
  CHECK(import({{"  bind:", "  init: fresh\n  bind:"}}).fresh);
  CHECK(import({{"loss: cross_entropy", "loss: {name: cross_entropy, output: 1}"}}).output ==
        decltype(fusion::ImportOptions::output)(std::int64_t{1}));
  CHECK(import({{"loss: cross_entropy", "loss: {name: cross_entropy, output: logits}"}}).output ==
        decltype(fusion::ImportOptions::output)(std::string("logits")));
  CHECK(import({{"epochs: 4", "epochs: 4\n  dtype: float64"}}).dtype == fusion::DType::kFloat64);

  const auto set = import({}, {{"model.bind.head.drop.p", "0.125"}, {"model.bind.tail.0.alpha", "2"}}).bind;
  REQUIRE(set.size() == 3);
  CHECK(set[0].value == 0.125);
  CHECK(set[0].where == "--set model.bind.head.drop.p: model.bind");
  CHECK(set[2].path == "tail.0.alpha");
  CHECK(set[2].value == 2);
  const StudyConfig elsewhere = parsed(kExported, {{"model.file", "./a/../../x.pt2"}});
  CHECK(elsewhere.task(kParams).model_file->file == elsewhere.folder.parent_path() / "x.pt2");
  CHECK(elsewhere.task(kParams).model_file->name == "../x.pt2");
}

TEST_CASE("what evaluation runs") {
  const auto model = [](const std::string& line) {
    const StudyConfig config = parsed(changed({{"  bind:", line + "  bind:"}}, kExported));
    return std::pair(*config.task(kParams).model_file, config.normalized);
  };
  const auto [none, plain] = model("");
  CHECK(none.evaluation_name.empty());
  CHECK_FALSE(none.evaluation_by_training);
  const auto [own, other] = model("  evaluation: ./e.pt2\n");
  CHECK(own.evaluation_name == "e.pt2");
  CHECK(own.evaluation_file == own.file.parent_path() / "e.pt2");
  CHECK_FALSE(own.evaluation_by_training);
  CHECK(config_differences(plain, other) ==
        std::vector<std::string>{"model.evaluation: found ./e.pt2, the study has nothing"});
  // Where the key may be left out, the training graph is what is meant.
  const auto [meant, same] = model("  evaluation: training_graph\n");
  CHECK(meant.evaluation_by_training);
  CHECK(meant.evaluation_name.empty());
  CHECK(same == plain);
}

TEST_CASE("what slots of an exported model start from") {
  const auto import = [](const std::string& init) {
    return parsed(changed({{"  bind:", "  init: " + init + "\n  bind:"}}, kExported)).task(kParams).model_file->import;
  };
  CHECK(import("{jitter: 0.25}").jitter == 0.25);
  CHECK_FALSE(import("{jitter: 0.25}").fresh);
  CHECK(import("fresh").jitter == 0);
  CHECK_FALSE(import("exported").fresh);
  for (const char* wrong :
       {"{jitter: 0}", "{jitter: -1}", "{jitter: a}", "{noise: 1}", "{jitter: 1, noise: 1}", "[1]", "new"}) {
    INFO(wrong);
    const std::string message =
        message_of(changed({{"  bind:", std::string("  init: ") + wrong + "\n  bind:"}}, kExported));
    CHECK_THAT(message, Catch::StartsWith("s.yaml:") && Catch::Contains("model.init") && Catch::Contains("wanted"));
  }
}

TEST_CASE("a search may choose to freeze nothing") {
  const StudyConfig config = parsed(
      changed({{"{values: [32, 64]}", "{values: [null, backbone.*]}"}, {"${hidden}.*", "${hidden}"}}, kExported));
  trials::Params params = kParams;
  params[2].second = {};
  CHECK(config.task(params).model_file->import.freeze.empty());
  params[2].second = std::string("backbone.*");
  CHECK(config.task(params).model_file->import.freeze == std::vector<std::string>{"backbone.*"});
}

TEST_CASE("where a parameter stands in an exported model's keys") {
  const std::string words = "{values: [a, b]}";
  const std::vector<std::pair<std::vector<Change>, bool>> cases = {
      {{{"0.5}", "\"${hidden}\"}"}, {kFreeze, ""}}, false},
      {{}, true},
      {{{"m.pt2", "\"${hidden}.pt2\""}, {kFreeze, ""}}, true},
      {{{kFreeze, "  freeze: [\"${hidden}\"]\n"}}, true},
      {{{"{values: [32, 64]}", "{values: [exported, fresh]}"}, {kFreeze, "  init: ${hidden}\n"}}, true},
      {{{"{values: [32, 64]}", "{values: [0, 1]}"},
        {kFreeze, ""},
        {"loss: cross_entropy", "loss: {name: cross_entropy, output: \"${hidden}\"}"}},
       true}};
  for (const auto& [changes, splits] : cases) {
    const std::string text = changed(changes, kExported);
    INFO(text);
    CHECK(message_of(text) == "");
    CHECK(parsed(text).shape_changing.contains("hidden") == splits);
    CHECK(parsed(text).warnings.empty());
  }
}

TEST_CASE("mistakes in an exported model's keys") {
  const std::vector<std::pair<std::vector<Change>, std::string>> cases = {
      {{{"  file: m.pt2\n", "  file: m.pt2\n  layers: [relu]\n"}},
       "s.yaml:12: model.file: found both layers and file, wanted one of them"},
      {{{"  file: m.pt2\n", ""}},
       "s.yaml:11: model.layers: found nothing, wanted a list of layers, or an exported model: file: model.pt2"},
      {{{"  file: m.pt2\n", "  layers: [relu]\n"}},
       "s.yaml:13: model.freeze: found a key of file, wanted a key of layers: layers"},
      {{{"m.pt2", "[m.pt2]"}}, "s.yaml:12: model.file: found a list, wanted a word"},
      {{{"m.pt2", "~"}}, "s.yaml:12: model.file: found nothing, wanted a word"},
      {{{kFreeze, "  freeze: []\n"}}, "s.yaml:13: model.freeze: found an empty list, wanted a name or a list of names"},
      {{{kFreeze, "  freeze: {a: b}\n"}}, "s.yaml:13: model.freeze: found a map, wanted a name or a list of names"},
      {{{kFreeze, "  freez: a\n"}},
       "s.yaml:13: model.freez: found an unknown key, wanted one of this section's; did you mean 'freeze'?"},
      {{{"0.5}", "half}"}}, "s.yaml:14: model.bind.block.*.p: found 'half', wanted a number"},
      {{{"0.5}", ".inf}"}}, "s.yaml:14: model.bind.block.*.p: found .inf, wanted a number that is finite"},
      {{{"0.5}", "{p: 1}}"}}, "s.yaml:14: model.bind.block.*.p: found a map, wanted a number"},
      {{{"\"block.*.p\"", "\"${drop}\""}},
       "s.yaml:14: model.bind: found the key '${drop}', wanted a word: ${name} stands for values only"},
      {{{"0.5}", "\"${dorp}\"}"}},
       "s.yaml:14: model.bind.block.*.p: found ${dorp}, wanted the name of a parameter; did you mean 'drop'?"},
      {{{"{values: [32, 64]}", "{values: [a, b]}"}, {"0.5}", "\"${hidden}\"}"}},
       "s.yaml:14: model.bind.block.*.p: found 'a' (from ${hidden}), wanted a number"},
      {{{"  bind: {head.drop.p: \"${drop}\", \"block.*.p\": 0.5}", "  bind: [a]"}},
       "s.yaml:14: model.bind: found a list, wanted a map of names and numbers"},
      {{{"  bind:", "  init: frsh\n  bind:"}},
       "s.yaml:14: model.init: found 'frsh', wanted exported, fresh, or {jitter: a number above 0}"},
      {{{"loss: cross_entropy", "loss: {name: cross_entropy, output: -1}"}},
       "s.yaml:18: train.loss.output: found -1, wanted a position from 0, or a name"},
      {{{"loss: cross_entropy", "loss: {name: cross_entropy, output: [0]}"}},
       "s.yaml:18: train.loss.output: found a list, wanted a position from 0, or a name"}};
  for (const auto& [changes, wanted] : cases) {
    const std::string text = changed(changes, kExported);
    INFO(text);
    CHECK(message_of(text) == wanted);
  }
  CHECK(message_of(changed({{"loss: cross_entropy", "loss: {name: cross_entropy, output: 0}"}})) ==
        "s.yaml:21: train.loss.output: found it beside model.layers, whose one output the loss takes");
}

TEST_CASE("a changed model is another study") {
  const auto differences = [](const std::vector<Change>& changes) {
    return config_differences(parsed(kExported).normalized, parsed(changed(changes, kExported)).normalized);
  };
  using Lines = std::vector<std::string>;
  CHECK(differences({{"m.pt2", "n.pt2"}}) == Lines{"model.file: found n.pt2, the study has m.pt2"});
  CHECK(differences({{"0.5}", "0.25}"}}) == Lines{"model.bind.block.*.p: found 0.25, the study has 0.5"});
  CHECK(differences({{"\"${drop}\"", "0.5"}}) == Lines{"model.bind.head.drop.p: found 0.5, the study has ${drop}"});
  CHECK(differences({{"${hidden}.*", "a"}}) == Lines{"model.freeze.0: found a, the study has ${hidden}.*"});
  CHECK(differences({{"  bind:", "  init: fresh\n  bind:"}}) ==
        Lines{"model.init: found fresh, the study has exported"});
  CHECK(differences({{"loss: cross_entropy", "loss: {name: cross_entropy, output: 1}"}}) ==
        Lines{"train.loss.output: found 1, the study has null"});
  CHECK(differences({{kFreeze, "  freeze: [\"${hidden}.*\"]\n"}, {"0.5}", "5e-1}"}}).empty());
  // A study that was begun before there were exported models still is what it was.
  CHECK(parsed(kSample).normalized.find("output") == std::string::npos);
}

}  // namespace
}  // namespace hfta::engine
