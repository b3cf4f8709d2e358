// hfta-tune export

#include "engine/driver/export.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

Usage export_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune export [STUDY] --storage URL --output FILE [--trial N]";
  usage.about =
      "A trial's weights as safetensors, under the model's own names: what load_state_dict takes. They are those that\n"
      "the trial's value was measured on, and are kept of the best trials (config: keep).\n";
  add_storage_option(usage.options);
  usage.options.add_options()("trial", po::value<int>()->value_name("N"), "the best COMPLETE trial unless told")(
      "output", po::value<std::string>()->value_name("FILE"), "where to; written atomically");
  usage.positional = {"STUDY"};
  return usage;
}

}  // namespace

int export_command(const Words& words) {
  const Usage usage = export_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const fs::path output = arguments.required("output");
  std::error_code ignored;
  if (output.empty() || fs::is_directory(output, ignored)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--output: found {}, wanted a file",
                            output.empty() ? "nothing" : "the folder " + printable(output.string())));
  }
  const std::unique_ptr<storage::Store> store = open_store(arguments);
  const std::string study = study_or_only(arguments, *store);
  const StudyConfig config = stored_config(*store, study, arguments.required("storage"), {}).config;
  const Faults faults;
  const storage::StatesPlace place = store->states(study);
  SystemFiles files(faults, place.root);
  storage::StudyStates states(files, place.folder);
  const std::vector<std::byte> bytes =
      export_weights(config, *store, states.of(storage::StateKind::kFinished), arguments.get<int>("trial"));
  print_to(output, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return 0;
}

}  // namespace hfta::engine
