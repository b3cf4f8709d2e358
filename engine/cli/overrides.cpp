#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/cli/places.hpp"
#include "engine/driver/study.hpp"

namespace hfta::engine {

namespace po = boost::program_options;

void add_override_options(po::options_description& options) {
  options.add_options()("trials", po::value<std::string>()->value_name("TOTAL"), "trials in all (run_cap)")(
      "width", po::value<std::string>()->value_name("B|auto"), "slots of an array (array.width)")(
      "device", po::value<std::string>()->value_name("D"),
      "auto, cpu, cuda, cuda:1, all, or several: cuda:0,cuda:1 (array.device)")(
      "set", po::value<std::vector<std::string>>()->value_name("key.path=value"),
      "any other key of the config; may be given again");
}

std::vector<Override> overrides_from(const Arguments& arguments) {
  std::vector<Override> overrides;
  for (const std::string& set : arguments.get<std::vector<std::string>>("set").value_or(std::vector<std::string>{})) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::kConfig, fmt::format("--set: found '{}', wanted key.path=value", printable(set)));
    }
    overrides.push_back({set.substr(0, equals), set.substr(equals + 1)});
  }
  const std::pair<const char*, const char*> flags[] = {
      {"trials", "run_cap"}, {"width", "array.width"}, {"device", "array.device"}};
  for (const auto& [flag, key] : flags) {
    const auto value = arguments.get<std::string>(flag);
    if (!value) continue;
    const bool list = key == std::string("array.device") && value->find(',') != std::string::npos;
    overrides.push_back({key, list ? "[" + *value + "]" : *value});
  }
  return overrides;
}

void tell_warnings(const StudyConfig& config) {
  for (const std::string& warning : config.warnings) tell("warning: " + warning);
}

void tell_notes(const std::vector<ModelFacts>& models) {
  for (const ModelFacts& model : models) {
    for (const std::string& note : model.notes) tell("warning: " + note);
  }
}

namespace {

// Names that tell trainers apart: a CPU that is there several times is numbered.
std::vector<std::string> labels_of(const std::vector<std::string>& devices) {
  std::vector<std::string> labels;
  std::map<std::string, int> seen;
  for (const std::string& device : devices) {
    const bool several = std::count(devices.begin(), devices.end(), device) > 1;
    labels.push_back(several ? fmt::format("{}:{}", device, seen[device]++) : device);
  }
  return labels;
}

}  // namespace

Fleet make_fleet(const StudyConfig& config, const std::filesystem::path& cache) {
  const TorchModule& module = load_torch_module();
  Fleet fleet;
  const std::vector<std::string> devices = module.devices(config.devices);
  fleet.devices = labels_of(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto sharers = static_cast<int>(std::count(devices.begin(), devices.end(), devices[i]));
    fleet.trainers.push_back(module.make_trainer({config, devices[i], fleet.devices[i], sharers, data_root(), cache}));
  }
  check_extremes(config, *fleet.trainers.front());
  return fleet;
}

}  // namespace hfta::engine
