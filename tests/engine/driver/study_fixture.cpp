#include "study_fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/driver/study/study.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine::testing {

namespace fs = std::filesystem;
using trials::DistributionKind;

trials::Parameter choice(const std::string& name, std::vector<trials::ParamValue> values) {
  trials::Parameter parameter;
  parameter.name = name;
  parameter.distribution.kind = DistributionKind::kCategorical;
  parameter.distribution.values = std::move(values);
  return parameter;
}

trials::Parameter range(const std::string& name, DistributionKind kind, double min, double max) {
  trials::Parameter parameter;
  parameter.name = name;
  parameter.distribution.kind = kind;
  parameter.distribution.min = min;
  parameter.distribution.max = max;
  return parameter;
}

trials::Space digits_space() {
  return {range("lr", DistributionKind::kLogUniformValues, 1e-4, 1.0), choice("wd", {std::int64_t{0}, 1e-4, 1e-3}),
          range("dropout", DistributionKind::kUniform, 0.0, 0.7),
          choice("hidden", {std::int64_t{64}, std::int64_t{128}})};
}

StudyConfig digits_config() {
  StudyConfig config;
  config.study = "digits";
  config.file = "digits.yaml";
  config.seed = 1;
  config.method = "hyperband";
  config.method_options.hyperband = {1, 27, 3};
  config.run_cap = 98;
  config.objectives.front().metric = "val_accuracy";
  config.objectives.front().goal = trials::Goal::kMaximize;
  config.space = digits_space();
  config.shape_changing = {"hidden"};
  config.text = "study: digits\n";
  config.normalized = R"({"study": "digits"})";
  config.task = [](const trials::Params&) {
    TaskSpec task;
    task.recipe.epochs = 5;
    task.data.test = 0.2;
    return task;
  };
  return config;
}

StudyFixture::StudyFixture(StudyConfig study_config, Kept kept)
    : config(std::move(study_config)), studies(folder.path() / "study.db") {
  if (kept == Kept::kInFile) config.storage = (folder.path() / "study.db").string();
  checkpoints = open()->states(config.study).folder;
}

std::unique_ptr<storage::Store> StudyFixture::open() {
  if (config.storage.empty()) return std::make_unique<storage::MemoryStore>(studies);
  return storage::open_store(config.storage, storage::OpenMode::kCreate);
}

Outcome StudyFixture::run(int devices) {
  const std::unique_ptr<storage::Store> opened = open();
  storage::Store& store = *opened;
  const ConfigOrigin origin{"/digits.yaml", {}};
  if (const auto stored = store.find(config.study)) {
    store.update(continued(*stored, config, origin));
  } else {
    store.create(new_record(config, origin, {}, prior));
  }
  SystemClock system;
  Clock& seam = clock != nullptr ? *clock : system;
  storage::StudyStates states(files, checkpoints);
  std::vector<std::unique_ptr<FakeTrainer>> owned;
  std::vector<Trainer*> trainers;
  for (int i = 0; i < devices; ++i) {
    // The first device is the slowest: reports come in in another order than the devices'.
    const std::string label = labels.empty() ? fmt::format("fake:{}", i) : labels.at(static_cast<std::size_t>(i));
    owned.push_back(std::make_unique<FakeTrainer>(world, label, 50 * (devices - 1 - i)));
    trainers.push_back(owned.back().get());
  }
  const std::unique_ptr<DeviceWorkers> workers = make_threads(trainers.size(), seam);
  const Faults orders(faults);
  return Driver(config, {store, trainers, *workers, seam, states, recorder, stop, orders, record_beside, state_memory})
      .run();
}

int StudyFixture::run_in_pieces(int rounds, int devices, bool keep_checkpoints) {
  for (int runs = 1;; ++runs) {
    if (runs > 5000) throw std::runtime_error("the study does not come to an end");
    stop = 0;
    const int before = world.runs;
    world.after_epochs = [&, before](int done) {
      if (done - before >= rounds) stop = SIGINT;
    };
    const Outcome outcome = run(devices);
    if (outcome.stopped_by == 0) {
      stop = 0;
      world.after_epochs = nullptr;
      return runs;
    }
    if (!keep_checkpoints) fs::remove_all(checkpoints / "running");
  }
}

void StudyFixture::fail_at(const std::string& call, int at, int& calls) {
  world.before_call = [&calls, call, at](const std::string& device, const std::string& name) {
    if (device != "fake:0") return;
    if (name == call) ++calls;
    if (calls >= at) throw Error(ErrorKind::kDevice, device + ": fell off the bus");
  };
}

std::vector<trials::Trial> StudyFixture::trials() { return open()->trials(config.study); }

int StudyFixture::count(trials::State state) {
  const std::vector<trials::Trial> all = trials();
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const auto& t) { return t.state == state; }));
}

std::string StudyFixture::table() {
  std::string text;
  for (const trials::Trial& t : trials()) {
    text += fmt::format("{} {} {} [{}]", t.number, trials::name_of(t.state), t.value() ? shortest(*t.value()) : "-",
                        t.reason);
    for (std::size_t i = 1; i < t.values.size(); ++i) text += " and " + shortest(t.values[i]);
    for (const auto& [name, value] : t.params) text += fmt::format(" {}={}", name, trials::to_text(value));
    for (const trials::Copy& copy : t.copies) {
      text += fmt::format(" copy of {} after {}:", copy.source, copy.epoch);
      for (const auto& [name, value] : copy.params) text += fmt::format(" {}={}", name, trials::to_text(value));
    }
    for (const auto& record : t.epochs) {
      text += fmt::format(" {}:", record.epoch);
      for (const auto& [name, value] : record.metrics) text += fmt::format("{}={},", name, shortest(value));
    }
    for (const auto& [name, value] : t.test_metrics) text += fmt::format(" {}={}", name, shortest(value));
    text += "\n";
  }
  return text;
}

const std::string& reference_table() {
  static const std::string table = [] {
    StudyFixture study(digits_config());
    study.config.width = 1;
    (void)study.run();
    return study.table();
  }();
  return table;
}

StudyConfig random_config(int run_cap) {
  StudyConfig config = digits_config();
  config.method = "random";
  config.run_cap = run_cap;
  return config;
}

StudyConfig objectives_config(const std::string& method, int run_cap) {
  StudyConfig config = random_config(run_cap);
  config.method = method;
  config.method_options.nsga2.population = 6;
  config.objectives = {{"val_accuracy", trials::Goal::kMaximize}, {kParameterCount, trials::Goal::kMinimize}};
  config.width = 5;
  return config;
}

long total_epochs(const std::vector<trials::Trial>& all) {
  long sum = 0;
  for (const auto& trial : all) sum += static_cast<long>(trial.epochs.size());
  return sum;
}

}  // namespace hfta::engine::testing
