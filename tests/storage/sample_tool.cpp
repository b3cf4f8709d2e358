/// For optuna_check.py: `storage_sample write STORE STUDY` makes a store in which everything occurs, `storage_sample
/// report STORE STUDY` prints a study in the form of `hfta-tune report --format json`, by other code than the
/// product's. `write_front` and `front` are for optuna_front_check.py: a study of several objectives, and its front.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/samples.hpp"
#include "trials/pareto.hpp"

namespace {

using nlohmann::json;
using namespace hfta;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json value_json(const trials::ParamValue& value) {
  return std::visit(
      [](const auto& held) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

json trial_json(const trials::Trial& trial) {
  json params = json::object(), metrics = json::object();
  for (const auto& [name, value] : trial.params) params[name] = value_json(value);
  if (!trial.epochs.empty()) {
    for (const auto& [name, value] : trial.epochs.back().metrics) metrics[name] = number(value);
  }
  json duration;
  if (trial.started && trial.completed)
    duration = std::chrono::duration<double>(*trial.completed - *trial.started).count();
  return {{"number", trial.number},
          {"state", name_of(trial.state)},
          {"value", trial.value() ? number(*trial.value()) : json(nullptr)},
          {"params", params},
          {"epochs", trial.epochs.empty() ? 0 : trial.epochs.back().epoch},
          {"duration_s", duration},
          {"metrics", metrics}};
}

void report(const std::string& path, const std::string& study) {
  storage::SqliteStore store = storage::SqliteStore::open(path, storage::SqliteStore::Mode::kReadOnly);
  const auto record = store.find(study);
  if (!record) throw Error(ErrorKind::kConfig, "no study " + study);
  json list = json::array(), counts = json::object();
  const auto trials = store.trials(study);
  for (const trials::Trial& trial : trials) {
    list.push_back(trial_json(trial));
    counts[name_of(trial.state)] = counts.value(name_of(trial.state), 0) + 1;
  }
  const trials::Trial* best = best_of(trials, record->objectives.front().goal);
  std::cout << json{{"study", study},
                    {"metric", record->objectives.front().metric},
                    {"direction", record->objectives.front().goal == trials::Goal::kMaximize ? "maximize" : "minimize"},
                    {"counts", counts},
                    {"best", best != nullptr ? trial_json(*best) : json(nullptr)},
                    {"trials", list}}
            << "\n";
}

void front(const std::string& path, const std::string& study) {
  storage::SqliteStore store = storage::SqliteStore::open(path, storage::SqliteStore::Mode::kReadOnly);
  const auto record = store.find(study);
  if (!record) throw Error(ErrorKind::kConfig, "no study " + study);
  json objectives = json::array(), list = json::array();
  for (const trials::Objective& one : record->objectives) {
    objectives.push_back({one.metric, one.goal == trials::Goal::kMaximize ? "MAXIMIZE" : "MINIMIZE"});
  }
  const std::vector<trials::Trial> trials = store.trials(study);
  for (const trials::Trial& trial : trials) {
    list.push_back({{"number", trial.number}, {"state", name_of(trial.state)}, {"values", trial.values}});
  }
  trials::Point reference;
  for (const trials::Objective& one : record->objectives) {
    reference.push_back(one.goal == trials::Goal::kMaximize ? 0 : 1000);
  }
  std::vector<trials::Point> points;
  std::vector<int> numbers;
  for (const trials::Trial* trial : trials::best_of(trials, record->objectives)) {
    points.push_back(*trials::point_of(*trial, record->objectives));
    numbers.push_back(trial->number);
  }
  std::cout << json{{"objectives", objectives},
                    {"trials", list},
                    {"front", numbers},
                    {"reference", reference},
                    {"hypervolume", trials::hypervolume(points, reference)}}
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "write") {
      storage::SqliteStore store = storage::SqliteStore::open(words[1], storage::SqliteStore::Mode::kCreate);
      storage::testing::write_sample(store, words[2]);
      return 0;
    }
    if (words.size() == 3 && words[0] == "write_front") {
      storage::SqliteStore store = storage::SqliteStore::open(words[1], storage::SqliteStore::Mode::kCreate);
      storage::testing::write_front(store, words[2]);
      return 0;
    }
    if (words.size() == 3 && words[0] == "report") {
      report(words[1], words[2]);
      return 0;
    }
    if (words.size() == 3 && words[0] == "front") {
      front(words[1], words[2]);
      return 0;
    }
    std::cerr << "usage: storage_sample write|report|write_front|front STORE STUDY\n";
  } catch (const std::exception& error) {
    std::cerr << "storage_sample: " << error.what() << "\n";
  }
  return 2;
}
