// repeat, folds and rank: what they make of a study and of its trials' tasks.
#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

using trials::Params;
using trials::Rank;

const Change kNoValidation = {", validation: 0.2", ""};

Change study_keys(const std::string& lines) { return {"run_cap: 8", "run_cap: 8\n" + lines}; }

Params params_of(const StudyConfig& config, int index) {
  return config.repetitions.params_of({{"lr", 0.1}, {"drop", 0.2}, {"hidden", std::int64_t{32}}}, index);
}

}  // namespace

TEST_CASE("repeat gives each trial of a configuration its seed") {
  const StudyConfig config = parsed(changed({study_keys("repeat: 3")}));
  CHECK(config.repetitions == trials::Repetitions{3, 1, Rank::kMean});
  REQUIRE(config.space.size() == 4);
  CHECK(config.space.back().name == "repeat");
  CHECK(config.searched().size() == 3);
  CHECK(config.shape_changing == std::set<std::string>{"hidden"});
  for (int i = 0; i < 3; ++i) CHECK(config.task(params_of(config, i)).seed == static_cast<std::uint64_t>(i));
  const StudyConfig seeded = parsed(changed({study_keys("repeat: 3"), {"epochs: 4", "epochs: 4\n  seed: 40"}}));
  for (int i = 0; i < 3; ++i) CHECK(seeded.task(params_of(seeded, i)).seed == static_cast<std::uint64_t>(40 + i));
  CHECK_FALSE(parsed(kSample).task(params_of(parsed(kSample), 0)).seed);
}

TEST_CASE("folds take the place of a validation set, and are slots of one array unless their sizes differ") {
  const StudyConfig config = parsed(changed({study_keys("folds: 5\nrank: lower"), kNoValidation}));
  CHECK(config.repetitions == trials::Repetitions{1, 5, Rank::kLower});
  CHECK(config.partition(params_of(config, 3)) == "hidden=32");
  const TaskSpec task = config.task(params_of(config, 3));
  CHECK(task.data.folds.count == 5);
  CHECK(task.data.folds.fold == 3);
  CHECK(task.seed == 0U);
  const StudyConfig whole =
      parsed(changed({study_keys("folds: {count: 2, stratified: true, groups: who}\nrepeat: 2"), kNoValidation}));
  CHECK(whole.partition(params_of(whole, 3)) == "hidden=32, fold=1");
  const TaskSpec last = whole.task(params_of(whole, 3));
  CHECK(last.data.folds.stratified);
  CHECK(last.data.folds.groups == "who");
  CHECK(last.data.folds.fold == 1);
  CHECK(last.seed == 1U);
  CHECK(parsed(changed({kNoValidation}), {{"folds", "3"}, {"folds.stratified", "true"}}).repetitions.folds == 3);
}

TEST_CASE("without repetitions a config is what it was, and may have parameters of those names") {
  for (const char* lines : {"repeat: 1", "folds: 1", "rank: mean", "folds: {count: 1}"}) {
    CHECK(parsed(changed({study_keys(lines)})).normalized == parsed(kSample).normalized);
  }
  CHECK(parsed(kSample).normalized.find("repeat") == std::string::npos);
  CHECK(parsed(kSample).normalized.find("fold") == std::string::npos);
  CHECK(parsed(changed({study_keys("repeat: 2")})).normalized.find("\"repeat\":2") != std::string::npos);
  CHECK_NOTHROW(parsed(changed({{"  drop:", "  fold:"}, {"${drop}", "${fold}"}})));
}

TEST_CASE("repetitions that make no sense are refused with words") {
  struct Case {
    std::vector<Change> changes;
    const char* words;
  };
  const std::vector<Case> cases = {
      {{study_keys("repeat: 0")}, "repeat: found 0, wanted an integer from 1 to 1000"},
      {{study_keys("folds: many"), kNoValidation}, "folds.count: found 'many', wanted an integer from 1 to 1000"},
      {{study_keys("folds: [5]"), kNoValidation}, "folds: found a list, wanted an integer from 1 to 1000, or a map"},
      {{study_keys("folds: 5")}, "data.validation: found it beside folds"},
      {{study_keys("folds: {stratified: true}")}, "folds.count: found no folds, wanted at least 2"},
      {{study_keys("rank: median")}, "rank: found median without repetitions"},
      {{study_keys("repeat: 3\nrank: best")}, "rank: found 'best', wanted one of mean, lower, median"},
      {{study_keys("repeat: 2"), {"  drop:", "  repeat:"}, {"${drop}", "${repeat}"}},
       "parameters.repeat: found it beside repeat, which gives every trial a parameter of that name"},
      {{study_keys("repeat: 4\nearly_stopping: racing")},
       "early_stopping: found racing with 4 trials of a "
       "configuration, wanted at least 5"},
      {{study_keys("early_stopping: racing")}, "found racing with one trial of a configuration"},
      {{study_keys("repeat: 5\nearly_stopping: {name: racing, confidence: 100}")}, "wanted an integer from 50 to 99"},
      {{{"method: random", "method: pbt"}, study_keys("repeat: 3")},
       "repeat: found 3 beside method: pbt, whose trials go on from copies of others"},
      {{{"run_cap: 8", "run_cap: 1000000000\nrepeat: 9"}}, "run_cap: found 1000000000 configurations of 9 trials"},
      {{study_keys("repeat: 3"), {"{dropout: \"${drop}\"}", "{dropout: \"${repeat}\"}"}}, "repeat"},
  };
  for (const Case& c : cases) {
    INFO(c.words);
    CHECK_THAT(message_of(changed(c.changes)), Catch::Contains(c.words));
  }
  CHECK_NOTHROW(parsed(changed({study_keys("repeat: 5\nearly_stopping: racing")})));
}

}  // namespace hfta::engine
