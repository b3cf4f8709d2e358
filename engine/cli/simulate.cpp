// hfta-tune simulate

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/faults.hpp"
#include "base/memory_files.hpp"
#include "base/temporary_folder.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/cli/signals.hpp"
#include "engine/report/report.hpp"
#include "engine/report/words.hpp"
#include "engine/simulate/simulation.hpp"
#include "storage/store.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int kTopTrials = 10;

Usage simulate_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune simulate CONFIG.yaml [options]";
  usage.about =
      "Runs the whole study in simulated time: the real search, packing and store, with curves in place of training.\n"
      "Shows what a strategy would find and how busy the devices would be, in seconds. Needs neither data nor torch.\n";
  usage.options.add_options()("curves", po::value<std::string>()->value_name("FILE"),
                              "CSV with columns trial, epoch and metrics; invented curves unless given")(
      "devices", po::value<int>()->value_name("N"), "simulated devices, 1 unless told")(
      "keep", po::value<std::string>()->value_name("FILE"), "keeps the store, as a new file");
  add_override_options(usage.options);
  usage.positional = {"CONFIG.yaml"};
  return usage;
}

int devices_from(const Arguments& arguments) {
  const int devices = arguments.get<int>("devices").value_or(1);
  if (devices < 1 || devices > 1024) {
    throw Error(ErrorKind::kConfig, fmt::format("--devices: found {}, wanted 1 to 1024", devices));
  }
  return devices;
}

void check_is_new(const fs::path& wanted) {
  std::error_code ignored;
  if (!fs::exists(wanted, ignored)) return;
  throw Error(ErrorKind::kConfig, fmt::format("--keep: found a file {}, wanted a new one", wanted.string()));
}

void keep_store(const fs::path& made, const fs::path& wanted) {
  std::error_code error;
  fs::copy_file(made, wanted, error);
  if (error) throw Error(ErrorKind::kStorage, fmt::format("{}: cannot write: {}", wanted.string(), error.message()));
}

}  // namespace

int simulate_command(const Words& words) {
  const Usage usage = simulate_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::atomic<int>& stop = catch_stop_signals();
  const TemporaryFolder folder("hfta-simulate");
  const std::optional<std::string> kept = arguments.get<std::string>("keep");
  const std::optional<std::string> recorded = arguments.get<std::string>("curves");
  if (kept) check_is_new(*kept);
  StudyConfig config = load_config(arguments.required("CONFIG.yaml"), overrides_from(arguments));
  tell_warnings(config);
  config.storage = folder.path() / "simulated.db";
  const std::unique_ptr<Curves> curves = recorded ? read_curves(*recorded, config) : make_invented_curves(config);
  const SimulationOptions options{devices_from(arguments)};
  const Faults faults;
  MemoryFiles files(faults);
  const SystemClock clock;
  const double start = clock.seconds();
  const Outcome outcome = simulate(config, *curves, options, files, faults, stop);
  if (outcome.stopped_by != 0) return 128 + outcome.stopped_by;
  storage::Store store = storage::Store::open(config.storage, storage::Store::Mode::kReadOnly);
  print(report_table(read_report(store, config.study), kTopTrials));
  print(fmt::format("simulated: {} on {} device{}; computed in {}\n", duration_text(outcome.seconds), options.devices,
                    options.devices == 1 ? "" : "s", duration_text(clock.seconds() - start)));
  if (kept) keep_store(config.storage, *kept);
  return outcome.any_complete ? 0 : 1;
}

}  // namespace hfta::engine
