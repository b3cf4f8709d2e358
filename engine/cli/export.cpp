// hfta-tune export

#include "engine/export/export.hpp"

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
  usage.synopsis = "hfta-tune export [STUDY] --storage URL --output FILE [--trial N] [--format F]";
  usage.about =
      "A trial's weights as safetensors, under the model's own names: what load_state_dict takes. They are those that\n"
      "the trial's value was measured on, and are kept of the best trials (config: keep). Of a trial that is RUNNING,\n"
      "as many are when a budget ends a study, they are the latest ones. Adapters of the config are merged into them;\n"
      "--format peft writes the adapters alone, a folder that PeftModel.from_pretrained takes.\n";
  add_storage_option(usage.options);
  usage.options.add_options()("trial", po::value<int>()->value_name("N"),
                              "the best COMPLETE trial unless told; of several objectives one has to be told")(
      "output", po::value<std::string>()->value_name("FILE"), "where to; written atomically")(
      "format", po::value<std::string>()->value_name("F")->default_value("weights"),
      "weights; merged (of a model that PEFT wrapped: that of the model without); peft (--output is a folder)");
  usage.positional = {"STUDY"};
  return usage;
}

ExportFormat format_of(const Arguments& arguments) {
  const std::string word = arguments.required("format");
  if (const std::optional<ExportFormat> format = export_format(word)) return *format;
  throw Error(ErrorKind::kConfig, fmt::format("--format: found '{}', wanted weights, merged or peft", printable(word)));
}

// Checks that the output can be written: a folder for several files, else a file.
void check_output(const fs::path& output, bool folder) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(output, ignored);
  if (!output.empty() && (folder ? is_folder || !fs::exists(output, ignored) : !is_folder)) return;
  const std::string found =
      output.empty() ? "nothing" : (is_folder ? "the folder " : "the file ") + printable(output.string());
  throw Error(ErrorKind::kConfig, fmt::format("--output: found {}, wanted a {}", found, folder ? "folder" : "file"));
}

void write(const fs::path& output, const std::vector<ExportedFile>& files) {
  for (const ExportedFile& file : files) {
    if (!file.name.empty()) fs::create_directories(output);
    print_to(file.name.empty() ? output : output / file.name,
             {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
  }
}

}  // namespace

int export_command(const Words& words) {
  const Usage usage = export_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const fs::path output = arguments.required("output");
  const ExportFormat format = format_of(arguments);
  check_output(output, format == ExportFormat::kPeft);
  const std::unique_ptr<storage::Store> store = open_store(arguments);
  const std::string study = study_or_only(arguments, *store);
  const StudyConfig config = stored_config(*store, study, arguments.required("storage"), {}).config;
  const Faults faults;
  const storage::StatesPlace place = store->states(study);
  SystemFiles files(faults, place.root);
  storage::StudyStates states(files, place.folder);
  write(output, export_trial(config, *store, states, arguments.get<int>("trial"), format));
  return 0;
}

}  // namespace hfta::engine
