// A config and the study it makes in a store->

#include "engine/driver/study/study.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/stamp.hpp"
#include "base/temporary_folder.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/study/history_json.hpp"
#include "engine/driver/study/redraw.hpp"
#include "engine/report/report.hpp"
#include "storage/stores/stores.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

TEST_CASE("a study's record says where its config came from") {
  const StudyConfig config = digits_config();
  const ConfigOrigin origin{"/home/a b/digits.yaml", {{"train.epochs", "9"}, {"seed", "\"7\""}}};
  const storage::StudyRecord record = new_record(config, origin);
  CHECK(record.name == "digits");
  CHECK(record.objectives.front().metric == "val_accuracy");
  CHECK(record.config == config.text);
  CHECK(record.run_caps == std::vector<int>{98});
  const ConfigOrigin back = origin_of(record);
  CHECK(back.file == origin.file);
  REQUIRE(back.overrides.size() == 2);
  CHECK(back.overrides[1].key_path == "seed");
  CHECK(back.overrides[1].value == "\"7\"");
}

TEST_CASE("a study keeps what auto chose for it") {
  StudyConfig config = digits_config();
  config.normalized = R"({"method": "tpe"})";
  const AutoChoice before = choice_of(new_record(config, {}));  // begun by a config that named its method
  CHECK(before.reason.empty());
  REQUIRE(before.keys.size() == 1);
  CHECK(before.keys[0].value == "tpe");
  config.choice = AutoChoice{{{"method", "tpe"}, {"early_stopping", "{name: asha}"}}, "so it is"};
  storage::StudyRecord record = new_record(config, {});
  const auto check = [](const storage::StudyRecord& kept) {
    const AutoChoice found = choice_of(kept);
    CHECK(found.text() == "auto chose method: tpe and early_stopping: {name: asha}, because so it is");
  };
  check(record);
  check(continued(record, config, {}));
  storage::MemoryStudies studies;
  storage::MemoryStore store(studies);
  store.create(record);
  const ReportInput input = read_report(store, record.name);
  CHECK(input.method == "tpe");
  CHECK(input.method_reason == "so it is");
  CHECK_THAT(report_table(input, 3), Catch::Contains("method: tpe, chosen by auto because so it is\n"));
  for (const char* damaged :
       {R"({"config": {}, "file": "", "set": []})", R"({"config": {"method": 1}, "file": "", "set": []})",
        R"({"config": {}, "file": "", "set": [], "choice": 1})",
        R"({"config": {}, "file": "", "set": [], "choice": {"keys": [[1]], "reason": ""}})"}) {
    record.config_json = damaged;
    CHECK_THROWS_WITH(choice_of(record), Catch::StartsWith("study 'digits': its record: /"));
  }
}

TEST_CASE("a report says which epoch's value a trial of the study has") {
  const auto selects_best = [](const storage::StudyRecord& record) {
    storage::MemoryStudies studies;
    storage::MemoryStore store(studies);
    store.create(record);
    return read_report(store, record.name).select_best;
  };
  StudyConfig config = digits_config();
  CHECK_FALSE(selects_best(new_record(config, {})));
  for (const bool best : {false, true}) {
    config.normalized = best ? R"({"metric": {"select": "best"}})" : R"({"metric": {"select": "last"}})";
    CHECK(selects_best(new_record(config, {})) == best);
  }
  storage::StudyRecord foreign = new_record(config, {});
  for (const char* json : {"", "[1]", "null", R"({"config": []})", R"({"config": {"metric": "best"}})"}) {
    foreign.config_json = json;
    CHECK_FALSE(selects_best(foreign));
  }
}

TEST_CASE("a study that Optuna made is not gone on with") {
  storage::StudyRecord record;
  record.name = "foreign";
  for (const char* json : {"", "{}", "[1]", "null", R"({"config": {}})"}) {
    record.config_json = json;
    CHECK_THROWS_WITH(origin_of(record), Catch::Contains("'foreign'") && Catch::Contains("--fresh"));
    CHECK_THROWS_AS(continued(record, digits_config(), {}), Error);
  }
}

TEST_CASE("a study is held to the content of its model files") {
  const StudyConfig config = digits_config();
  const auto facts = [](const std::string& file, const std::string& fingerprint) {
    ModelFacts model;
    model.file = file;
    model.fingerprint = fingerprint;
    return model;
  };
  const storage::StudyRecord record = new_record(config, {}, {{facts("a.pt2", "1"), facts("b.pt2", "2")}, {}});
  using Fingerprints = std::map<std::string, std::string>;
  CHECK(model_fingerprints(record) == Fingerprints{{"a.pt2", "1"}, {"b.pt2", "2"}});
  CHECK(model_fingerprints(new_record(config, {})).empty());
  CHECK(model_fingerprints(continued(record, config, {})).size() == 2);
  const storage::StudyRecord next = continued(record, config, {}, {{facts("b.pt2", "2"), facts("c.pt2", "3")}, {}});
  CHECK(model_fingerprints(next) == Fingerprints{{"a.pt2", "1"}, {"b.pt2", "2"}, {"c.pt2", "3"}});
  CHECK_THROWS_WITH(continued(record, config, {}, {{facts("a.pt2", "1"), facts("b.pt2", "9")}, {}}),
                    "digits.yaml: model.file: found another b.pt2 (fingerprint 9) than study 'digits' was begun with "
                    "(2); --fresh starts a new study beside it");
  storage::StudyRecord damaged = record;
  damaged.config_json = R"({"config": {}, "file": "", "set": [], "models": 3})";
  CHECK_THROWS_WITH(model_fingerprints(damaged),
                    "study 'digits': its record: /models: found 3, wanted an object of texts");
  damaged.config_json = R"({"config": {}, "file": "", "set": [], "prior": [1]})";
  CHECK_THROWS_WITH(prior_of(damaged),
                    "study 'digits': its record: /prior: found [1], wanted the trials of an earlier study");
}

TEST_CASE("files that were written since they were read are known by their stamps") {
  const TemporaryFolder folder("stamps");
  StudyConfig config = digits_config();
  config.folder = folder.path();
  const std::filesystem::path data = folder.path() / "a.csv", elsewhere = folder.path() / ".." / "m.pt2";
  const auto write = [](const std::filesystem::path& file, const char* text) { std::ofstream(file) << text; };
  write(data, "1");
  const auto facts = [&] {
    StudyFiles files = {{}, {{"a.csv", "7", "1", {{data, stamp_of(data)}}}}};
    files.models.push_back({"m.pt2", "1", "", {}, 0, {}, {{elsewhere, stamp_of(elsewhere)}}});
    return files;
  };
  const auto changed = [&](const storage::StudyRecord& record) { return changed_files(record, config.folder); };
  using Paths = std::vector<std::filesystem::path>;
  storage::StudyRecord record = new_record(config, {}, facts());
  CHECK(changed(record).empty());
  CHECK(changed(new_record(config, {})).empty());
  write(data, "22");
  CHECK(changed(record) == Paths{data});
  record = continued(record, config, {}, facts());
  CHECK(changed(record).empty());
  CHECK(changed(continued(record, config, {})).empty());
  std::filesystem::remove(data);
  CHECK(changed(continued(record, config, {})) == Paths{data});
}

TEST_CASE("a study is held to the numbers of its data") {
  const StudyConfig config = digits_config();
  const StudyFiles begun = {{}, {{"a.csv", "7", "1"}, {"a.csv", "8", "2"}}};
  const storage::StudyRecord record = new_record(config, {}, begun);
  CHECK_NOTHROW(continued(record, config, {}, begun));
  const storage::StudyRecord next = continued(record, config, {}, {{}, {{"b.csv", "7", "5"}}});
  const std::string wanted =
      "digits.yaml: data: found other numbers in a.csv or the validation or test data (fingerprint 9) than study "
      "'digits' was begun "
      "with (2); --fresh starts a new study beside it";
  CHECK_THROWS_WITH(continued(next, config, {}, {{}, {{"a.csv", "7", "1"}, {"a.csv", "8", "9"}}}), wanted);
  CHECK_THROWS_AS(continued(next, config, {}, {{}, {{"b.csv", "7", "6"}}}), Error);
  // Begun by a version that did not note it.
  CHECK_NOTHROW(continued(new_record(config, {}), config, {}, begun));
}

TEST_CASE("caps are remembered, ascending") {
  struct Case {
    std::vector<int> stored;
    std::optional<int> now;
    std::vector<int> next;
  };
  const Case cases[] = {{{}, {}, {}},
                        {{}, 5, {5}},
                        {{5}, 5, {5}},
                        {{5}, 9, {5, 9}},
                        {{5, 9}, {}, {5, 9}},
                        {{5, 9}, 9, {5, 9}},
                        // Where only a budget ended the study, any cap is new.
                        {{kEndless}, kEndless, {kEndless}},
                        {{kEndless}, 5, {5}},
                        {{5, kEndless}, 9, {5, 9}},
                        {{5}, kEndless, {5, kEndless}}};
  StudyConfig config = digits_config();
  for (const Case& c : cases) {
    config.run_cap = c.now;
    CHECK(next_caps(c.stored, config) == c.next);
  }
  config.run_cap = 8;
  CHECK_THROWS_WITH(next_caps({5, 9}, config), Catch::Contains("found 8, wanted at least 9"));
}

TEST_CASE("the number of trials is the least that cap, space and strategy allow") {
  StudyConfig config = digits_config();
  CHECK(make_strategy(config, {98}).trials() == 98);
  CHECK(make_strategy(config, {}).trials() == 49);
  config.method = "random";
  CHECK_FALSE(make_strategy(config, {}).trials().has_value());
  CHECK(make_strategy(config, {7, 12}).trials() == 12);
  config.method = "grid";
  config.space = {range("a", trials::DistributionKind::kIntUniform, 1, 6)};
  CHECK(make_strategy(config, {}).trials() == 6);
  CHECK(make_strategy(config, {4}).trials() == 4);
  CHECK(make_strategy(config, {40}).trials() == 6);
}

TEST_CASE("a study that only its budget ends has no number of trials, with repetitions either") {
  StudyConfig config = random_config(9);
  config.run_cap = kEndless;
  config.budget.epochs = 900;
  for (const char* stopping : {"none", "median"}) {
    CAPTURE(stopping);
    config.early_stopping = {};
    if (stopping != std::string("none")) config.early_stopping = {{stopping}};
    config.repetitions = {3, 1, trials::Rank::kMean};
    const Strategy strategy = make_strategy(config, {kEndless});
    CHECK(strategy.trials() == kEndless);
    CHECK(strategy.trials(4) == kEndless);
    const std::int64_t planned = strategy.scheduler->planned_epochs(0, kEndless);
    CHECK(planned >= std::int64_t{5} * kEndless);
    CHECK(planned <= std::int64_t{5} * (kEndless + 3));
    CHECK(make_strategy(config, {12}).trials() == 36);
  }
}

TEST_CASE("an earlier study's trials come back from the store as they were") {
  const double inf = std::numeric_limits<double>::infinity();
  const search::History history = {
      {{{"a", 0.5}}, {1, inf, -inf, 0.1}, {0.1, 2, -inf, inf}, trials::State::kComplete},
      {{{"a", std::string("x")}}, {}, {inf}, trials::State::kPruned},
      {{}, {}, {}, trials::State::kFail},
  };
  const search::History read = history_from(nlohmann::json::parse(history_json(history).dump()));
  REQUIRE(read.size() == history.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].params == history[i].params);
    CHECK(read[i].curve == history[i].curve);
    CHECK(read[i].values == history[i].values);
    CHECK(read[i].ended == history[i].ended);
  }
}

TEST_CASE("of another program's trial the values are taken whose epochs are known") {
  struct Case {
    std::vector<int> steps;
    std::size_t wanted;
  };
  const std::vector<Case> cases = {{{}, 0},           {{1, 2, 3}, 3}, {{0, 1, 2}, 3}, {{10, 20, 30}, 0},
                                   {{1, 2, 4, 5}, 0}, {{2, 3}, 0},    {{0, 10}, 0},   {{1}, 1}};
  for (const Case& one : cases) {
    trials::Trial trial;
    for (const int step : one.steps) trial.epochs.push_back({step, {{"loss", 0.5 * step}}});
    const std::vector<double> values = curve_of(trial, "loss");
    REQUIRE(values.size() == one.wanted);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == 0.5 * one.steps[i]);
  }
}

TEST_CASE("a study is finished when every trial is done and the best one tested") {
  StudyFixture study(digits_config());
  const auto finished = [&] {
    const std::unique_ptr<storage::Store> store = study.open();
    return is_finished(*store, study.config, *store->find("digits"));
  };
  study.world.after_epochs = [&](int runs) {
    if (runs == 5) study.stop = 2;
  };
  (void)study.run();
  CHECK_FALSE(finished());
  study.stop = 0;
  (void)study.run();
  CHECK(finished());
  study.config.run_cap = 99;
  const std::unique_ptr<storage::Store> store = study.open();
  store->update(continued(*store->find("digits"), study.config, {}));
  CHECK_FALSE(is_finished(*store, study.config, *store->find("digits")));
}

TEST_CASE("a finished study without test data needs no test") {
  StudyFixture study(digits_config());
  study.world.has_test = false;
  (void)study.run();
  const std::unique_ptr<storage::Store> store = study.open();
  CHECK_FALSE(is_finished(*store, study.config, *store->find("digits")));  // its config asks for a test set
  study.config.task = [](const trials::Params&) { return TaskSpec{}; };
  CHECK(is_finished(*store, study.config, *store->find("digits")));
}

// What a second process reads of it before it knows that the first one has the study.
TEST_CASE("a study that is being run can be read at any moment") {
  StudyConfig config = random_config(60);
  config.method = "tpe";
  config.width = 1;  // so that there are many commits that add a trial
  StudyFixture study(config, Kept::kInFile);
  std::atomic<bool> is_over = false;
  std::thread runner([&] {
    (void)study.run();
    is_over = true;
  });
  int reads = 0;
  std::string failure;
  while (!is_over) {
    try {
      const std::unique_ptr<storage::Store> store =
          storage::open_store_if_made(study.config.storage, storage::OpenMode::kReadOnly);
      const std::optional<storage::StudyRecord> record = store ? store->find("digits") : std::nullopt;
      if (!record) continue;
      (void)is_finished(*store, study.config, *record);
      (void)redraw(study.config, *store);
      ++reads;
    } catch (const std::exception& error) {
      failure = error.what();
      break;
    }
  }
  runner.join();
  CHECK(failure == "");
  CHECK(reads > 0);
  const std::unique_ptr<storage::Store> store = study.open();
  CHECK(is_finished(*store, study.config, *store->find("digits")));
}

TEST_CASE("fresh names count up") {
  StudyFixture study(digits_config());
  const std::unique_ptr<storage::Store> store = study.open();
  CHECK(fresh_name(*store, "digits") == "digits-2");
  for (const char* name : {"digits", "digits-2", "digits-4"}) {
    storage::StudyRecord record = new_record(study.config, {});
    record.name = name;
    store->create(record);
  }
  CHECK(fresh_name(*store, "digits") == "digits-3");
}

TEST_CASE("the edges of the space are checked before anything is made") {
  StudyConfig config = digits_config();
  World world;
  FakeTrainer trainer(world, "cpu");
  check_extremes(config, trainer);
  std::set<std::string> seen;
  for (const trials::Params& params : world.checked) {
    REQUIRE(params.size() == 4);
    for (const auto& [name, value] : params) seen.insert(name + "=" + trials::to_text(value));
  }
  for (const char* edge :
       {"lr=1e-04", "lr=1", "wd=0", "wd=0.001", "wd=1e-04", "dropout=0", "dropout=0.7", "hidden=64", "hidden=128"}) {
    CAPTURE(edge);
    CHECK(seen.contains(edge));
  }
  const auto has = [&](std::int64_t hidden, double lr) {
    return std::any_of(world.checked.begin(), world.checked.end(), [&](const trials::Params& p) {
      return p[3].second == trials::ParamValue(hidden) && p[0].second == trials::ParamValue(lr);
    });
  };
  for (const std::int64_t hidden : {64, 128}) {
    for (const double lr : {1e-4, 1.0}) CHECK(has(hidden, lr));
  }
}

TEST_CASE("the number of configurations that are checked is bounded") {
  StudyConfig config = digits_config();
  config.space.clear();
  config.shape_changing.clear();
  for (int i = 0; i < 40; ++i) {
    const std::string name = "p" + std::to_string(i);
    config.space.push_back(choice(name, {std::int64_t{1}, std::int64_t{2}}));
    config.shape_changing.insert(name);
  }
  World world;
  FakeTrainer trainer(world, "cpu");
  check_extremes(config, trainer);
  CHECK(world.checked.size() == 512);
}
