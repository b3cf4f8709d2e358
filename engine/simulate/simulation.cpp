#include "engine/simulate/simulation.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "engine/driver/study/study.hpp"
#include "engine/simulate/simulated_time.hpp"
#include "engine/simulate/simulated_trainer.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {
namespace {

class Silence final : public EventSink {
 public:
  void take(const Event& /*event*/) override {}
};

}  // namespace

Outcome simulate(const StudyConfig& config, const Curves& curves, const SimulationOptions& options,
                 storage::Store& store, Files& files, const Faults& faults, const std::atomic<int>& stop) {
  store.use(faults);
  const ConfigOrigin origin{config.file, {}};
  if (const auto stored = store.find(config.study)) {
    store.update(continued(*stored, config, origin));
  } else {
    store.create(new_record(config, origin, {}, options.prior));
  }
  storage::StudyStates states(files, store.states(config.study).folder);
  Silence silence;
  SimulatedTime time(static_cast<std::size_t>(options.devices));
  std::vector<std::unique_ptr<SimulatedTrainer>> owned;
  std::vector<Trainer*> trainers;
  for (int i = 0; i < options.devices; ++i) {
    const std::function<double()> speed = [&options, &time, i] {
      return options.speed ? options.speed(i, time.seconds()) : 1.0;
    };
    owned.push_back(
        std::make_unique<SimulatedTrainer>(config, curves, time,
                                           SimulatedDevice{fmt::format("simulated:{}", i), speed, options.fixed,
                                                           options.threads.empty() ? 0 : options.threads.at(i)}));
    trainers.push_back(owned.back().get());
  }
  DriverDependencies dependencies{store, trainers, time, time, states, silence, stop, faults};
  dependencies.record_beside = false;
  return Driver(config, dependencies).run();
}

}  // namespace hfta::engine
