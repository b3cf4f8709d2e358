#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"

namespace hfta::engine {

namespace po = boost::program_options;

void add_override_options(po::options_description& options) {
  options.add_options()("trials", po::value<std::string>()->value_name("TOTAL"), "trials in all (run_cap)")(
      "width", po::value<std::string>()->value_name("B|auto"), "slots of an array (array.width)")(
      "device", po::value<std::string>()->value_name("D"),
      "auto, cpu, cpu:3 (threads), cuda, cuda:1, all, or several: cuda:0,cuda:1 (array.device)")(
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
    overrides.push_back({key, list ? "[" + *value + "]" : *value, std::string("--") + flag});
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

}  // namespace hfta::engine
