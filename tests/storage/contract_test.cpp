/// Store's contract, promise by promise, on every store. See differential_test.cpp for what nobody thought of.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <thread>

#include "base/faults.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/places.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

using trials::State;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Each store in turn.
std::unique_ptr<StorePlace> any_store() {
  const StoreKind& kind = store_kind(GENERATE(range(0, kStoreKinds)));
  UNSCOPED_INFO("store: " << kind.name);
  return kind.make();
}

TEST_CASE("contract: a study reads back as it was written, by any connection", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> before = place->open();
  write_sample(*place->open(), "digits");
  for (const std::unique_ptr<Store>& after : {place->open(), place->open()}) {
    check_equal(after->trials("digits"), sample_trials());
    check_equal(before->trials("digits"), sample_trials());
    CHECK(reading_of(*after) == reading_of(*before));
  }
  const StudyRecord wanted = sample_study("digits");
  const auto record = before->find("digits");
  REQUIRE(record);
  CHECK(record->name == wanted.name);
  CHECK(record->objectives.front().metric == wanted.objectives.front().metric);
  CHECK((record->objectives.front().goal == wanted.objectives.front().goal));
  CHECK(record->config == wanted.config);
  CHECK(record->config_json == wanted.config_json);
  CHECK(record->run_caps == wanted.run_caps);
  REQUIRE(record->space.size() == wanted.space.size());
  for (std::size_t i = 0; i < wanted.space.size(); ++i) {
    const trials::Distribution &a = record->space[i].distribution, &b = wanted.space[i].distribution;
    INFO(wanted.space[i].name);
    CHECK(record->space[i].name == wanted.space[i].name);
    CHECK((a.kind == b.kind && a.values == b.values && a.probabilities == b.probabilities && a.integer == b.integer));
    CHECK((a.min == b.min && a.max == b.max && a.mu == b.mu && a.sigma == b.sigma && a.q == b.q));
  }
  CHECK_FALSE(before->find("other"));
  CHECK(before->draws("digits") == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("contract: several objectives read back, one value of each trial for each", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_front(store, "s");
  const trials::Objectives wanted = {{"val_accuracy", trials::Goal::kMaximize},
                                     {"parameters", trials::Goal::kMinimize}};
  CHECK((store.find("s")->objectives == wanted));
  REQUIRE(store.studies().size() == 1);
  CHECK((store.studies()[0].objectives == wanted));
  CHECK_FALSE(store.studies()[0].best);
  const std::vector<trials::Trial> trials = store.trials("s");
  CHECK(trials[4].values == std::vector<double>{0.9375, 900});
  CHECK(trials[3].values.empty());

  const std::vector<std::vector<double>> refused = {{0.5}, {0.5, 1, 2}, {0.5, kNaN}};
  for (const std::vector<double>& values : refused) {
    Changes changes;
    changes.states = {{5, State::kComplete, values, "", at(30)}};
    CHECK_THROWS_AS(store.commit("s", changes), Error);
    CHECK((store.trials("s")[5].state == State::kRunning));
  }
  Changes changes;
  changes.states = {{5, State::kComplete, {0.5, -kInfinity}, "", at(30)}};
  store.commit("s", changes);
  CHECK(store.trials("s")[5].values == std::vector<double>{0.5, -kInfinity});
  changes.states = {{5, State::kRunning, {}, "", at(30)}};
  store.commit("s", changes);
  CHECK(store.trials("s")[5].values.empty());
}

TEST_CASE("contract: arrays, rounds and occupancy read back, changed ones as changed", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_sample(store, "s");
  const auto arrays = store.arrays("s");
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].width == 3);
  CHECK(arrays[0].chunk == 1);
  CHECK(arrays[0].threads == 4);
  CHECK(arrays[0].device == "cpu");
  CHECK(arrays[0].partition == "hidden=64");
  CHECK(arrays[0].choices_json == R"({"conv1":{"chosen":"loop","how":"remembered"}})");
  CHECK(arrays[1].partition == "hidden=128");
  const auto rounds = store.rounds("s");
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].width == 6);
  CHECK(rounds[1].round == 1);
  CHECK(rounds[1].occupied == 3);
  CHECK(rounds[1].seconds == 1.1);
  const auto occupancy = store.occupancy("s");
  REQUIRE(occupancy.size() == 9);
  CHECK(occupancy[8].round == 1);
  CHECK(occupancy[8].slot == 5);
  CHECK(occupancy[8].trial == 5);
  CHECK(occupancy[8].epoch == 2);
}

TEST_CASE("contract: a round written again replaces its rows", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_sample(store, "s");
  store.commit("s", sample_round(1));
  check_equal(store.trials("s"), sample_trials());
  CHECK(store.occupancy("s").size() == 9);
  CHECK(store.rounds("s").size() == 2);

  Changes changes;
  changes.epochs = {{3, {2, {{"val_accuracy", 0.5}}}, 0.5}};  // train_loss is not there any more
  store.commit("s", changes);
  const auto trials = store.trials("s");
  CHECK(trials[3].epochs[1].metrics == std::map<std::string, double>{{"val_accuracy", 0.5}});
}

TEST_CASE("contract: how far a study's runs have come is what was committed last", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  write_sample(*store, "digits");
  CHECK(store->find("digits")->progress.seconds == 0);
  CHECK(store->find("digits")->progress.ended_by.empty());
  Changes changes;
  changes.progress = Progress{12.5, "its budget of 3 \"epochs\""};
  CHECK_FALSE(changes.empty());
  store->commit("digits", changes);
  for (const std::unique_ptr<Store>& after : {place->open(), place->open()}) {
    CHECK(after->find("digits")->progress.seconds == 12.5);
    CHECK(after->find("digits")->progress.ended_by == "its budget of 3 \"epochs\"");
  }
  store->update(*store->find("digits"));  // leaves it alone
  changes.progress = Progress{13, ""};
  store->commit("digits", changes);
  CHECK(place->open()->find("digits")->progress.seconds == 13);
  CHECK(place->open()->find("digits")->progress.ended_by.empty());
}

TEST_CASE("contract: copies read back by epoch, in the order of the trial's parameters", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  write_sample(*opened, "s");
  const auto copied = [&](int epoch, int source, trials::Params params) {
    Changes changes;
    changes.copies = {{3, {epoch, source, std::move(params)}}};
    opened->commit("s", changes);
  };
  trials::Params reversed = params_of(4);
  std::reverse(reversed.begin(), reversed.end());
  copied(11, 1, params_of(1));
  copied(2, 4, reversed);
  copied(11, 0, params_of(5));  // again
  const std::vector<trials::Trial> trials = place->open()->trials("s");
  CHECK((trials[3].copies == std::vector<trials::Copy>{{2, 4, params_of(4)}, {11, 0, params_of(5)}}));
  CHECK((trials[3].params == params_of(3)));
  CHECK((trials::latest_params(trials[3]) == params_of(5)));
  CHECK((trials::latest_params(trials[2]) == params_of(2)));
  CHECK(trials[2].copies.empty());
  CHECK_THROWS_AS(copied(3, 99, params_of(1)), Error);
  CHECK_THROWS_AS(copied(3, 1, {{"unknown", 1.0}}), Error);
  CHECK(place->open()->trials("s")[3].copies.size() == 2);
}

TEST_CASE("contract: several studies in a store do not mix", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  CHECK(store.studies().empty());
  write_sample(store, "one");
  StudyRecord two = sample_study("two");
  two.objectives.front().goal = trials::Goal::kMinimize;
  store.create(two);
  CHECK(store.add_trials("two", {{params_of(1)}}, at(100)) == std::vector<int>{0});
  CHECK(store.add_trials("one", {{params_of(2)}, {params_of(3)}}, at(101.5)) == std::vector<int>{6, 7});
  CHECK(store.add_trials("two", {}, at(100)).empty());
  Changes changes;
  changes.states = {{0, State::kComplete, {0.25}, "", at(103)}};
  store.commit("two", changes);

  CHECK(store.trials("two").size() == 1);
  CHECK(store.trials("one").size() == 8);
  CHECK(store.draws("one").size() == 8);
  const auto studies = store.studies();
  REQUIRE(studies.size() == 2);
  CHECK(studies[0].name == "one");
  CHECK(studies[0].objectives.front().metric == "val_accuracy");
  CHECK((studies[0].objectives.front().goal == trials::Goal::kMaximize));
  CHECK(studies[0].counts == std::map<std::string, int>{{"COMPLETE", 2}, {"FAIL", 2}, {"PRUNED", 1}, {"RUNNING", 3}});
  CHECK(studies[0].best == 0.875);
  CHECK((studies[0].last_change == at(101.5)));
  CHECK(studies[1].best == 0.25);
  CHECK((studies[1].objectives.front().goal == trials::Goal::kMinimize));
}

TEST_CASE("contract: names are taken once, and unknown ones are refused with the nearest", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_sample(store, "digits");
  check_refused(place->name(), "'digits' already", [&] { store.create(sample_study("digits")); });
  check_refused(place->name(), "empty", [&] { store.create(sample_study("")); });
  check_refused(place->name(), "did you mean 'digits'?", [&] { (void)store.trials("digit"); });
  check_refused(place->name(), "'x'", [&] { store.commit("x", sample_round(0)); });
  check_refused(place->name(), "'x'", [&] { (void)store.add_trials("x", {{params_of(0)}}, at(0)); });
  check_refused(place->name(), "'x'", [&] { store.update(sample_study("x")); });
  const std::string odd = "it's \"odd\" / 'n \xe2\x82\xac; DROP TABLE trials; --";
  write_sample(store, odd);
  check_equal(store.trials(odd), sample_trials());
}

TEST_CASE("contract: update replaces the config and the caps, nothing else", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_sample(store, "s");
  StudyRecord changed = sample_study("s");
  changed.config = "edited";
  changed.config_json = "{}";
  changed.run_caps = {3, 6, 12};
  changed.objectives.front().metric = "other";
  changed.space.clear();
  store.update(changed);
  const auto record = store.find("s");
  REQUIRE(record);
  CHECK(record->config == "edited");
  CHECK(record->config_json == "{}");
  CHECK(record->run_caps == std::vector<int>{3, 6, 12});
  CHECK(record->objectives.front().metric == "val_accuracy");
  CHECK(record->space.size() == every_kind().size());
  check_equal(store.trials("s"), sample_trials());
}

TEST_CASE("contract: what no study can hold is our bug, and leaves nothing behind", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> opened = place->open();
  Store& store = *opened;
  write_sample(store, "s");
  const auto refused = [&](const std::string& words, const Changes& changes) {
    CHECK_THAT(message_of(ErrorKind::kInternal, [&] { store.commit("s", changes); }), Catch::Contains(words));
    check_equal(store.trials("s"), sample_trials());
  };
  Changes changes;
  changes.epochs = {{0, {3, {{"val_accuracy", 1}}}, 1}};
  changes.states = {{3, State::kComplete, {kNaN}, "", at(50)}};
  refused("trial 3", changes);
  changes.states = {{6, State::kComplete, {0.5}, "", at(50)}};
  refused("trial 6", changes);
  changes.states = {{-1, State::kComplete, {0.5}, "", at(50)}};
  refused("trial -1", changes);

  trials::Params wrong = params_of(0);
  wrong[3].second = std::string("word");
  const auto add = [&](const trials::Params& params) {
    return message_of(ErrorKind::kInternal, [&] { (void)store.add_trials("s", {{params_of(1)}, {params}}, at(60)); });
  };
  CHECK_THAT(add(wrong), Catch::Contains("uniform") && Catch::Contains("word"));
  CHECK_THAT(add({{"unknown", 1.0}}), Catch::Contains("unknown"));
  CHECK_THAT(add({{"categorical", std::int64_t{1}}}), Catch::Contains("choices"));  // not the same as true
  CHECK_THAT(add({{"uniform", kNaN}}), Catch::Contains("nan"));
  CHECK_THAT(add({{"int_uniform", 0.5}}), Catch::Contains("integer"));
  check_equal(store.trials("s"), sample_trials());
  CHECK(store.draws("s").size() == 6);
}

struct StateCase {
  State state;
  std::vector<double> given;
  std::optional<double> stored;
};

TEST_CASE("contract: values follow Optuna's rules for each state", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  store->create(sample_study("s"));
  (void)store->add_trials("s", {{params_of(0)}}, at(0));
  const StateCase cases[] = {{State::kComplete, {0.5}, 0.5},       {State::kComplete, {kInfinity}, kInfinity},
                             {State::kPruned, {0.5}, 0.5},         {State::kPruned, {kNaN}, std::nullopt},
                             {State::kPruned, {}, std::nullopt},   {State::kFail, {0.5}, std::nullopt},
                             {State::kFail, {kNaN}, std::nullopt}, {State::kRunning, {0.5}, std::nullopt}};
  for (const StateCase& c : cases) {
    Changes first, changes;
    first.states = {{0, State::kComplete, {0.125}, "", at(5)}};
    store->commit("s", first);  // whatever stood there before goes
    changes.states = {{0, c.state, c.given, "why", at(7)}};
    store->commit("s", changes);
    const trials::Trial trial = store->trials("s").at(0);
    INFO(trials::name_of(c.state));
    CHECK((trial.state == c.state));
    CHECK(trial.value() == c.stored);
    CHECK(trial.reason == "why");
    CHECK((trial.completed == (c.state == State::kRunning ? std::nullopt : std::optional(at(7)))));
    CHECK(store->studies()[0].best == (c.state == State::kComplete ? c.stored : std::nullopt));
  }
}

TEST_CASE("contract: rows come in the order of their numbers, and minus zero as zero", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  store->create(sample_study("s"));
  (void)store->add_trials("s", {{params_of(0)}, {params_of(1)}}, at(0));
  Changes changes;
  for (const int i : {2, 0, 1}) {
    changes.arrays.push_back({i, "cpu", "", 1, 1, 1, "{}"});
    changes.rounds.push_back({i, 1 - i % 2, 1, 1, -0.0});
    changes.rounds.push_back({1, i, 1, 1, 0.5});
    changes.occupancy.push_back({1, i, 1, 0, 1});
    changes.occupancy.push_back({i, 1, 2, 1, 1});
    changes.epochs.push_back({1, {1 + i, {{"val_accuracy", -0.0}}}, -0.0});
  }
  changes.states = {{1, State::kComplete, {-0.0}, "", at(1)}};
  changes.test_metrics = {{1, {{"test", -0.0}}}};
  store->commit("s", changes);
  std::vector<int> arrays;
  for (const ArrayRecord& a : store->arrays("s")) arrays.push_back(a.array);
  CHECK(arrays == std::vector<int>{0, 1, 2});
  std::vector<std::pair<int, int>> rounds;
  for (const RoundRecord& r : store->rounds("s")) {
    rounds.emplace_back(r.round, r.array);
    CHECK_FALSE(std::signbit(r.seconds));
  }
  CHECK(rounds == std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 1}});
  std::vector<std::vector<int>> slots;
  for (const OccupancyRecord& o : store->occupancy("s")) slots.push_back({o.round, o.array, o.slot, o.trial});
  CHECK(slots == std::vector<std::vector<int>>{
                     {0, 1, 1, 0}, {1, 0, 2, 1}, {1, 1, 1, 0}, {1, 1, 2, 1}, {1, 2, 2, 1}, {2, 1, 1, 0}});
  const trials::Trial trial = store->trials("s").at(1);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(trial.epochs.at(i).epoch == static_cast<int>(i) + 1);
    CHECK_FALSE(std::signbit(trial.epochs[i].metrics.at("val_accuracy")));
  }
  CHECK_FALSE(std::signbit(trial.values.at(0)));
  CHECK_FALSE(std::signbit(trial.test_metrics.at("test")));
  changes = {};
  changes.test_metrics = {{1, {{"another", 1.0}}}};
  store->commit("s", changes);
  CHECK(store->trials("s").at(1).test_metrics.size() == 2);
}

TEST_CASE("contract: a trial that waits is claimed once, by its number, and drawn then", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open(), other = place->open();
  store->create(sample_study("s"));
  (void)store->add_trials("s", {{params_of(0)}}, at(0));
  place->enqueue("s", {{"uniform", 0.5}, {"layers", std::int64_t{3}}});
  place->enqueue("s", {});
  place->enqueue("s", {{"uniform", 2.0}});
  CHECK(store->add_trials("s", {{params_of(1)}}, at(1)) == std::vector<int>{4});
  CHECK(store->draws("s") == std::vector<int>{0, 4});
  REQUIRE(store->enqueued("s").size() == 3);
  CHECK(store->enqueued("s")[0].number == 1);
  CHECK(store->enqueued("s")[0].params.size() == 2);
  CHECK(store->enqueued("s")[1].params.empty());
  CHECK((store->trials("s")[2].state == State::kWaiting));
  CHECK_FALSE(store->trials("s")[2].started);

  CHECK_THAT(message_of(ErrorKind::kInternal,
                        [&] {
                          (void)store->claim("s", 2, {{"unknown", 1.0}}, at(2), "");
                        }),
             Catch::Contains("unknown"));
  CHECK(store->enqueued("s").size() == 3);
  CHECK(store->draws("s").size() == 2);
  CHECK(other->claim("s", 2, params_of(2), at(2), ""));
  CHECK_FALSE(store->claim("s", 2, params_of(3), at(3), ""));
  CHECK_FALSE(store->claim("s", 0, params_of(3), at(3), ""));
  CHECK(store->claim("s", 3, {}, at(4), "enqueued with uniform = 2"));
  CHECK_THAT(message_of(ErrorKind::kInternal, [&] { (void)store->claim("s", 5, {}, at(2), ""); }),
             Catch::Contains("trial 5"));
  CHECK(store->draws("s") == std::vector<int>{0, 4, 2, 3});
  CHECK(store->enqueued("s").size() == 1);
  const std::vector<trials::Trial> all = store->trials("s");
  CHECK((all[2].state == State::kRunning && all[2].enqueued && all[2].params == params_of(2)));
  CHECK((all[2].started == at(2) && !all[2].completed));
  CHECK((all[3].state == State::kFail && all[3].enqueued && all[3].params.empty()));
  CHECK((all[3].started == at(4) && all[3].completed == at(4)));
  CHECK(all[3].reason == "enqueued with uniform = 2");
  CHECK_FALSE(all[4].enqueued);
}

TEST_CASE("contract: what others have written is told once, what this connection wrote is not", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open(), other = place->open();
  CHECK(store->changed_outside());
  CHECK_FALSE(store->changed_outside());
  store->create(sample_study("s"));
  CHECK_FALSE(store->changed_outside());
  CHECK(other->changed_outside());
  Changes changes;
  changes.started = {{0, at(1)}};
  StudyRecord edited = sample_study("s");
  edited.config = "edited";
  const std::function<void()> writes[] = {[&] { (void)other->add_trials("s", {{params_of(0)}}, at(0)); },
                                          [&] { other->commit("s", changes); },
                                          [&] { other->update(edited); },
                                          [&] { other->create(sample_study("t")); },
                                          [&] { (void)other->take_lease("s", {}, "token", "holder"); },
                                          [&] { place->enqueue("s", {}); },
                                          [&] { (void)other->claim("s", 1, params_of(1), at(0), ""); }};
  for (const std::function<void()>& write : writes) {
    write();
    CHECK(store->changed_outside());
    CHECK_FALSE(store->changed_outside());
  }
  (void)other->trials("s");
  CHECK_FALSE(other->take_lease("s", {}, "late", "holder"));
  CHECK_FALSE(store->changed_outside());
}

TEST_CASE("contract: a round that fails before it is durable leaves nothing, and can be written again", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  write_sample(*store, "s");
  const std::string before = reading_of(*store);
  Changes changes = sample_round(1);
  changes.epochs = {{3, {3, {{"val_accuracy", 0.25}}}, 0.25}};
  const Faults none;
  const std::pair<const char*, ErrorKind> cases[] = {{"in-transaction@2=full", ErrorKind::kStorage},
                                                     {"in-transaction@2=fail", ErrorKind::kDevice}};
  for (const auto& [order, kind] : cases) {
    const Faults faults(order);
    store->use(faults);
    store->commit("s", sample_round(1));  // as it is already
    CHECK(reading_of(*store) == before);
    CHECK_THAT(message_of(kind, [&] { store->commit("s", changes); }), Catch::Contains("asked for"));
    CHECK(reading_of(*store) == before);
    store->use(none);
  }
  store->commit("s", changes);
  CHECK(store->trials("s").at(3).epochs.size() == 3);
  store->commit("s", {});
  CHECK_NOTHROW(store->commit("nobody's", {}));  // no changes, no questions
}

TEST_CASE("contract: connections of several threads write side by side, and each number is one trial's", "[contract]") {
  constexpr int kThreads = 4, kTimes = 12;
  const std::unique_ptr<StorePlace> place = any_store();
  place->open()->create(sample_study("s"));
  std::vector<std::vector<int>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<Store> store = place->open();
      const Store::Patience patient(*store, std::chrono::minutes(5));
      for (int time = 0; time < kTimes; ++time) {
        for (const int number : store->add_trials("s", {{params_of(i)}, {params_of(i)}}, at(time))) {
          numbers[static_cast<std::size_t>(i)].push_back(number);
          Changes changes;
          changes.states = {{number, State::kComplete, {1.0 * i}, "", at(time)}};
          store->commit("s", changes);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<trials::Trial> all = place->open()->trials("s");
  REQUIRE(all.size() == static_cast<std::size_t>(2 * kThreads * kTimes));
  std::set<int> seen;
  for (int i = 0; i < kThreads; ++i) {
    for (const int number : numbers[static_cast<std::size_t>(i)]) {
      CHECK(seen.insert(number).second);
      CHECK(all[static_cast<std::size_t>(number)].value() == i);
      CHECK((all[static_cast<std::size_t>(number)].params == params_of(i)));
    }
  }
  CHECK(seen.size() == all.size());
  CHECK(place->open()->draws("s").size() == all.size());
}

TEST_CASE("contract: each study has a place for states of its own, of which nothing is made", "[contract]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  const StatesPlace one = store->states("one"), odd = store->states("../odd");
  CHECK(one.folder != odd.folder);
  for (const StatesPlace& states : {one, odd}) {
    CHECK(states.folder.parent_path().parent_path() == states.root);
    CHECK_FALSE(std::filesystem::exists(states.folder.parent_path()));
  }
}

}  // namespace
}  // namespace hfta::storage::testing
