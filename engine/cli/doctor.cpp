// hfta-tune doctor

#include "engine/doctor/doctor.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

Usage doctor_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune doctor [STORE] [--storage URL] [--study NAME] [--repair]";
  usage.about =
      "Looks at a store, and at the states beside it, and says what is wrong, what that means and what to do. Changes\n"
      "nothing unless --repair is given. The exit code is 0 where nothing is damaged, 3 where something is.\n";
  add_storage_option(usage.options);
  usage.options.add_options()("study", po::value<std::string>()->value_name("NAME"), "only this study")(
      "repair", "mends what is safe, after a copy of the store was made; never while a study is being run")(
      "format", po::value<std::string>()->value_name("table|json"), "table unless told");
  usage.positional = {"STORE"};
  return usage;
}

}  // namespace

int doctor_command(const Words& words) {
  const Usage usage = doctor_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string format =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "json"});
  if (arguments.has("STORE") && arguments.has("storage")) {
    throw Error(ErrorKind::kConfig, "STORE: found one besides --storage, wanted one of the two; see --help");
  }
  const std::filesystem::path store =
      storage::store_file(arguments.has("STORE") ? arguments.required("STORE") : arguments.required("storage"));
  const std::optional<std::string> study = arguments.get<std::string>("study");
  const SystemClock clock;
  const Diagnosis diagnosis = arguments.has("repair") ? repair(store, study, clock) : examine(store, study, clock);
  print(format == "json" ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis));
  return diagnosis.count(Severity::kDamage) == 0 ? 0 : kDamagedStore;
}

}  // namespace hfta::engine
