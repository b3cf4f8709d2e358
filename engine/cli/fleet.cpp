// The devices of a study, each with its trainer.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "engine/cli/commands.hpp"
#include "engine/cli/places.hpp"
#include "engine/driver/study.hpp"
#include "engine/topology/numa.hpp"

namespace hfta::engine {
namespace {

// Names that tell trainers apart: a CPU that is there several times is numbered. A number that would make the name of
// another device, "cpu:1" of two `cpu` beside a device of one thread, is left out.
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

std::vector<std::vector<int>> kept_cpus(const std::vector<std::string>& devices, std::vector<int> threads) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (without_threads(devices[i]) != "cpu") threads[i] = 0;
  }
  return cpus_for(threads, numa_nodes());
}

}  // namespace

Fleet make_fleet(const StudyConfig& config, const std::filesystem::path& cache) {
  const TorchModule& module = load_torch_module();
  const std::vector<std::string> devices = module.devices(config.devices);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::vector<int> threads = threads_of(devices, config.threads.value_or(cores));
  const std::vector<std::vector<int>> cpus = kept_cpus(devices, threads);
  Fleet fleet;
  fleet.devices = labels_of(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string device = without_threads(devices[i]);
    const auto sharers = static_cast<int>(std::count_if(
        devices.begin(), devices.end(), [&](const std::string& other) { return without_threads(other) == device; }));
    fleet.trainers.push_back(
        module.make_trainer({config, device, fleet.devices[i], sharers, data_root(), cache, threads[i], cpus[i]}));
  }
  check_extremes(config, *fleet.trainers.front());
  return fleet;
}

}  // namespace hfta::engine
