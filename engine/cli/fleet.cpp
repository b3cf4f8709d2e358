// The devices of a study, each with its trainer.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/places.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/parallel/parallel_trainer.hpp"
#include "engine/parallel/start.hpp"
#include "engine/topology/numa.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::engine {
namespace {

// Names that tell trainers apart: a CPU that is there several times is numbered. A number that would give the name of
// another device is left out: "cpu:1" for one of two `cpu`, beside a device of one thread.
std::vector<std::string> labels_of(const std::vector<std::string>& devices) {
  const auto times = [&](const std::string& word) { return std::count(devices.begin(), devices.end(), word); };
  std::vector<std::string> labels;
  std::map<std::string, int> next;
  for (const std::string& device : devices) {
    std::string label = device;
    while (times(device) > 1 && times(label) > 0) label = fmt::format("{}:{}", device, next[device]++);
    labels.push_back(std::move(label));
  }
  return labels;
}

// "cpu:3" is the CPU.
std::string without_threads(const std::string& device) { return cpu_threads(device) ? "cpu" : device; }

// One device, or a part of one.
struct Part {
  std::string device;  ///< "cpu", "cuda:1"
  int threads = 0;
  std::vector<int> cpus = {};
};

// The parts of each device; each part has the CPUs of a node to itself.
std::vector<std::vector<Part>> parts_of_all(const std::vector<std::string>& devices, int cores) {
  const std::vector<int> threads = threads_of(devices, cores);
  std::vector<std::vector<Part>> all;
  std::vector<int> on_cpu;  // threads, by part
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::vector<Part>& parts = all.emplace_back();
    for (const std::string& part : parts_of(devices[i])) {
      parts.push_back({without_threads(part), threads[i]});
      on_cpu.push_back(parts.back().device == "cpu" ? threads[i] : 0);
    }
  }
  const std::vector<std::vector<int>> cpus = cpus_for(on_cpu, numa_nodes());
  std::size_t next = 0;
  for (std::vector<Part>& parts : all) {
    for (Part& part : parts) part.cpus = cpus[next++];
  }
  return all;
}

// The number of trainers that are on the same device, which share its memory.
int sharers_of(const std::string& device, const std::vector<std::vector<Part>>& all) {
  int count = 0;
  for (const std::vector<Part>& parts : all) {
    for (const Part& part : parts) count += part.device == device ? 1 : 0;
  }
  return count;
}

// Makes the trainer of a device with several parts. This process is rank 0.
std::unique_ptr<Trainer> make_parallel(const TorchModule& module, TrainerOptions options,
                                       const std::vector<Part>& parts) {
  auto seats = std::make_shared<std::vector<Descriptor>>(fusion::make_seats(static_cast<int>(parts.size())));
  options.group = fusion::take_seat(std::move(seats->front()), 0);
  const auto start = [seats, parts, options]() {
    std::vector<std::unique_ptr<Member>> members;
    for (std::size_t r = 1; r < parts.size(); ++r) {
      members.push_back(start_member(program_file(), static_cast<int>(r), std::move((*seats)[r])));
      TrainerOptions own = options;
      own.threads = parts[r].threads;
      own.cpus = parts[r].cpus;
      members.back()->channel().send(start_json(own));
    }
    return members;
  };
  const StudyConfig& config = options.config;
  return std::make_unique<ParallelTrainer>(module.make_trainer(options), start, static_cast<int>(parts.size()),
                                           options.label, config.divide,
                                           [config](const trials::Params& params) { return config.partition(params); });
}

// Refuses stages on a device of one part, which would train the whole model.
void check_stages(const StudyConfig& config, const std::vector<std::string>& devices) {
  if (config.divide != Divide::kStages) return;
  for (const std::string& device : devices) {
    if (parts_of(device).size() > 1) continue;
    throw Error(
        ErrorKind::kConfig,
        fmt::format("array.divide: found stages for the device {}, wanted devices of a part for each stage, such "
                    "as array.device: cpu:1+cpu:1; or divide: auto",
                    device));
  }
}

}  // namespace

Fleet make_fleet(const StudyConfig& config, const std::filesystem::path& cache) {
  const TorchModule& module = load_torch_module();
  const std::vector<std::string> devices = module.devices(config.devices);
  check_stages(config, devices);
  const std::vector<std::vector<Part>> all = parts_of_all(devices, config.threads.value_or(usable_cores()));
  Fleet fleet;
  fleet.devices = labels_of(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Part& first = all[i].front();
    const TrainerOptions options{config,      first.device, fleet.devices[i], sharers_of(first.device, all),
                                 data_root(), cache,        first.threads,    first.cpus};
    fleet.trainers.push_back(all[i].size() > 1 ? make_parallel(module, options, all[i]) : module.make_trainer(options));
  }
  check_extremes(config, *fleet.trainers.front());
  return fleet;
}

}  // namespace hfta::engine
