#include "tests/storage/samples.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "base/error.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/trials/distributions.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;
using trials::State;
using trials::testing::bounded;
using trials::testing::normal;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TempFolder::TempFolder() {
  static std::atomic<int> count{0};
  path_ = fs::temp_directory_path() / fmt::format("hfta-storage-test-{}-{}", ::getpid(), count++);
  fs::create_directories(path_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::byte> BreakableFiles::read(const fs::path& path, std::size_t limit) {
  const auto found = contents.find(path.string());
  if (found == contents.end() || unreadable.contains(path.string())) {
    throw Error(ErrorKind::kStorage, path.string() + ": cannot read: Input/output error");
  }
  if (found->second.size() > limit) throw Error(ErrorKind::kStorage, path.string() + ": too large");
  const auto* data = reinterpret_cast<const std::byte*>(found->second.data());
  return {data, data + found->second.size()};
}

void BreakableFiles::write_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  if (writes_left-- <= 0) throw Error(ErrorKind::kStorage, path.string() + ": cannot write: No space left on device");
  contents[path.string()] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::vector<std::string> BreakableFiles::list(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& [path, bytes] : contents) {
    if (fs::path(path).parent_path() == folder) names.push_back(fs::path(path).filename().string());
  }
  return names;
}

trials::UtcTime at(double seconds) {
  using namespace std::chrono;
  const sys_days day(year(2026) / 11 / 21);
  return day + hours(7) + microseconds(std::llround(seconds * 1e6));
}

trials::Space every_kind() {
  Distribution constant;
  constant.values = {std::string("adamw")};
  Distribution categorical;
  categorical.kind = DistributionKind::kCategorical;
  categorical.values = {std::monostate{}, true,  std::int64_t{3}, 0.1, std::string("w\xc3\xb6rd \"quoted\""), 3.0,
                        std::string("3"), false, std::string()};
  categorical.probabilities = {0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
  using K = DistributionKind;
  return {{"constant", constant},
          {"categorical", categorical},
          {"int_uniform", bounded(K::kIntUniform, -5, 9223372036854775807.0)},
          {"uniform", bounded(K::kUniform, -1, 1)},
          {"q_uniform", bounded(K::kQUniform, 0.3, 0.8, 0.5)},
          {"log_uniform", bounded(K::kLogUniform, -9.5, 0.1)},
          {"q_log_uniform", bounded(K::kQLogUniform, 0, 5, 2)},
          {"log_uniform_values", bounded(K::kLogUniformValues, 1e-4, 1)},
          {"q_log_uniform_values", bounded(K::kQLogUniformValues, 8, 512, 8, true)},
          {"inv_log_uniform", bounded(K::kInvLogUniform, 1, 3)},
          {"inv_log_uniform_values", bounded(K::kInvLogUniformValues, 0.001, 0.1)},
          {"normal", normal(K::kNormal, 0, 0.1)},
          {"q_normal", normal(K::kQNormal, 5, 2, 0.25)},
          {"log_normal", normal(K::kLogNormal, -3, 1)},
          {"q_log_normal", normal(K::kQLogNormal, 1, 1, 0.5)},
          {"whole.q", bounded(K::kQUniform, 16, 128, 16, true)}};
}

trials::Params params_of(int trial) {
  const trials::Space space = every_kind();
  const auto& choices = space[1].distribution.values;
  const std::int64_t big[] = {9007199254740993, 9223372036854775807, -5, 0, 9007199254740992, 12345678901234567};
  const double t = trial;
  return {{"constant", std::string("adamw")},
          {"categorical", choices[static_cast<std::size_t>(trial) % choices.size()]},
          {"int_uniform", big[trial % 6]},
          {"uniform", trial == 0 ? -0.0 : -1 + t / 3},
          {"q_uniform", trial % 2 == 0 ? 0.5 : 1.0},
          {"log_uniform", std::exp(-9.5 + t)},
          {"q_log_uniform", 2.0 * t},
          {"log_uniform_values", 0.1 + 0.2 * t / 3},
          {"q_log_uniform_values", std::int64_t{8} * (trial + 1)},
          {"inv_log_uniform", 1 / std::exp(1 + t / 3)},
          {"inv_log_uniform_values", 0.1 / (1 + t)},
          {"normal", -0.85 + t / 4},
          {"q_normal", 0.25 * t - 5},
          {"log_normal", std::exp(-3 - t)},
          {"q_log_normal", 0.5 * t},
          {"whole.q", std::int64_t{16} * (trial + 1)}};
}

StudyRecord sample_study(const std::string& name) {
  StudyRecord study;
  study.name = name;
  study.objectives.front().metric = "val_accuracy";
  study.objectives.front().goal = trials::Goal::kMaximize;
  study.space = every_kind();
  study.config = "study: sample  # comment\nmethod: random\nunusual: \xe2\x82\xac\n";
  study.config_json = R"({"method":"random"})";
  study.run_caps = {3, 6};
  return study;
}

Changes sample_round(int round) {
  Changes changes;
  const auto epoch = [&](int trial, int number, double value) {
    changes.epochs.push_back(
        {trial, {number, {{"train_loss", 1.0 / (trial + number)}, {"val_accuracy", value}}}, value});
    changes.occupancy.push_back({0, round, trial, trial, number});
  };
  if (round == 0) {
    changes.arrays = {{0, "cpu", "hidden=64", 6, 2, 4, R"({"conv1":{"chosen":"bmm","how":"measured"}})"}};
    for (int trial = 0; trial < kSampleTrials; ++trial) {
      changes.started.emplace_back(trial, at(1 + trial));
      epoch(trial, 1, trial == 2 ? kNaN : trial == 4 ? -kInfinity : 0.5 + 0.1 * trial / 3);
    }
    changes.states = {{1, State::kPruned, {0.5 + 0.1 / 3}, "", at(20.5)},
                      {2, State::kFail, {}, "val_accuracy is NaN at epoch 1", at(20.25)},
                      {4, State::kFail, {}, "val_accuracy is -inf at epoch 1", at(20.000001)}};
  } else {
    changes.arrays = {{0, "cpu", "hidden=64", 3, 1, 4, R"({"conv1":{"chosen":"loop","how":"remembered"}})"},
                      {1, "cpu", "hidden=128", 1, 1, 1, "{}"}};
    epoch(0, 2, 0.75);
    epoch(3, 2, 0.625);
    epoch(5, 2, 0.875);
    changes.states = {{0, State::kComplete, {0.75}, "", at(31)}, {5, State::kComplete, {0.875}, "", at(32)}};
    changes.test_metrics = {{5, {{"test_accuracy", 0.8125}, {"test_loss", kInfinity}}}};
  }
  changes.rounds = {{round, 0, round == 0 ? 6 : 3, round == 0 ? 6 : 3, 0.1 + round}};
  return changes;
}

void write_sample(Store& store, const std::string& name) {
  store.create(sample_study(name));
  std::vector<NewTrial> added;
  for (int trial = 0; trial < kSampleTrials; ++trial) added.push_back({params_of(trial)});
  const std::vector<int> numbers = store.add_trials(name, added, at(0));
  if (numbers != std::vector<int>{0, 1, 2, 3, 4, 5}) throw std::logic_error("add_trials: wrong numbers");
  store.commit(name, sample_round(0));
  store.commit(name, sample_round(1));
  const Lease wanted = sample_lease();
  if (store.take_lease(name, std::nullopt, wanted.token, wanted.holder) != wanted) {
    throw std::logic_error("take_lease: another lease");
  }
}

void write_store(const fs::path& file) {
  SqliteStore store = SqliteStore::open(file, SqliteStore::Mode::kCreate);
  write_sample(store, "s");
}

void write_front(Store& store, const std::string& name) {
  StudyRecord study = sample_study(name);
  study.objectives.push_back({"parameters", trials::Goal::kMinimize});
  store.create(study);
  std::vector<NewTrial> added;
  for (int trial = 0; trial < kSampleTrials; ++trial) added.push_back({params_of(trial)});
  (void)store.add_trials(name, added, at(0));
  const std::vector<std::vector<double>> values = {{0.875, 500}, {0.75, 100}, {0.75, 200}, {}, {0.9375, 900}};
  Changes changes;
  for (int trial = 0; trial < kSampleTrials; ++trial) changes.started.emplace_back(trial, at(1 + trial));
  for (int trial = 0; trial < static_cast<int>(values.size()); ++trial) {
    const std::vector<double>& own = values[static_cast<std::size_t>(trial)];
    if (own.empty()) {
      changes.states.push_back({trial, State::kFail, {}, "val_accuracy is NaN at epoch 1", at(20)});
      continue;
    }
    changes.epochs.push_back({trial, {1, {{"val_accuracy", own[0]}, {"parameters", own[1]}}}, std::nullopt});
    changes.states.push_back({trial, State::kComplete, own, "", at(20)});
  }
  store.commit(name, changes);
}

Lease sample_lease() { return {1, "adele-4711-Xa0Yb1", "process 4711 on host adele"}; }

std::vector<trials::Trial> sample_trials() {
  std::vector<trials::Trial> list(kSampleTrials);
  for (int number = 0; number < kSampleTrials; ++number) {
    trials::Trial& trial = list[static_cast<std::size_t>(number)];
    trial.number = number;
    trial.params = params_of(number);
    trial.started = at(1 + number);
  }
  for (int round = 0; round < 2; ++round) {
    const Changes changes = sample_round(round);
    for (const Changes::Epoch& epoch : changes.epochs)
      list[static_cast<std::size_t>(epoch.trial)].epochs.push_back(epoch.record);
    for (const StateChange& change : changes.states) {
      trials::Trial& trial = list[static_cast<std::size_t>(change.trial)];
      trial.state = change.state;
      trial.values = change.values;
      trial.reason = change.reason;
      trial.completed = change.when;
    }
    for (const auto& [number, metrics] : changes.test_metrics)
      list[static_cast<std::size_t>(number)].test_metrics = metrics;
  }
  return list;
}

}  // namespace hfta::storage::testing
