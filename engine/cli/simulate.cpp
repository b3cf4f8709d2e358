// hfta-tune simulate

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/faults.hpp"
#include "base/memory_files.hpp"
#include "base/number_text.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/cli/signals.hpp"
#include "engine/cli/warm_start.hpp"
#include "engine/report/report.hpp"
#include "engine/report/words.hpp"
#include "engine/simulate/simulation.hpp"
#include "storage/memory/memory_store.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int kTopTrials = 10;

Usage simulate_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune simulate CONFIG.yaml|--allocation|--planner [options]";
  usage.about =
      "Runs the whole study in simulated time: the real search, packing and store, with curves in place of training.\n"
      "Shows what a strategy would find and how busy the devices would be, in seconds. Needs neither data nor torch.\n";
  usage.options.add_options()("curves", po::value<std::string>()->value_name("FILE"),
                              "CSV with columns trial, epoch and metrics; invented curves unless given")(
      "devices", po::value<std::string>()->value_name("N|S,S,..."),
      "simulated devices, 1 unless told; or each, by its speed, or as threads of a CPU: 1,1,0.3 or cpu:1,cpu:1")(
      "keep", po::value<std::string>()->value_name("FILE"), "keeps the store, as a new file");
  add_override_options(usage.options);
  add_allocation_options(usage.options);
  add_planner_options(usage.options);
  usage.positional = {"CONFIG.yaml"};
  return usage;
}

Error wrong_devices(const std::string& text) {
  return {ErrorKind::kConfig,
          fmt::format("--devices: found {}, wanted 1 to 1024, or the speeds of 2 to 1024 devices, each "
                      "from 0.001 to 1000 or cpu:N",
                      excerpt(text))};
}

template <typename Number>
Number number_in(const std::string& word, Number least, Number most, const std::string& text) {
  const auto number = parse_number<Number>(word);
  if (!number || !(*number >= least && *number <= most)) throw wrong_devices(text);
  return *number;
}

// --devices: "3" is a number; "1,1,0.3" are speeds; "cpu:2,cpu:2" are threads.
SimulationOptions devices_from(const std::string& text) {
  constexpr int kMost = 1024;
  SimulationOptions options;
  if (text.find_first_of(",:") == std::string::npos) {
    options.devices = number_in(text, 1, kMost, text);
    return options;
  }
  std::vector<double> speeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    options.threads.push_back(cpu_threads(word).value_or(0));
    speeds.push_back(options.threads.back() > 0 ? 1 : number_in(word, 1e-3, 1e3, text));
    begin = end + 1;
  }
  if (speeds.size() > kMost) throw wrong_devices(text);
  options.devices = static_cast<int>(speeds.size());
  options.speed = [speeds](int device, double) { return speeds[static_cast<std::size_t>(device)]; };
  return options;
}

void check_is_new(const fs::path& wanted) {
  std::error_code ignored;
  if (!fs::exists(wanted, ignored)) return;
  throw Error(ErrorKind::kConfig, fmt::format("--keep: found a file {}, wanted a new one", wanted.string()));
}

// A store in memory, or, if it is to be kept, a file in a folder of its own, which becomes the wanted one at the end.
class SimulatedStore {
 public:
  explicit SimulatedStore(std::optional<fs::path> wanted) : wanted_(std::move(wanted)) {
    if (!wanted_) {
      store_ = std::make_unique<storage::MemoryStore>(studies_);
      return;
    }
    folder_.emplace("hfta-simulate");
    made_ = folder_->path() / "simulated.db";
    store_ =
        std::make_unique<storage::SqliteStore>(storage::SqliteStore::open(made_, storage::SqliteStore::Mode::kCreate));
  }
  [[nodiscard]] storage::Store& get() { return *store_; }
  void keep() const {
    if (!wanted_) return;
    std::error_code error;
    fs::copy_file(made_, *wanted_, error);
    if (!error) return;
    throw Error(ErrorKind::kStorage, fmt::format("{}: cannot write: {}", wanted_->string(), error.message()));
  }

 private:
  std::optional<fs::path> wanted_;
  storage::MemoryStudies studies_;
  std::optional<TemporaryFolder> folder_;
  fs::path made_;
  std::unique_ptr<storage::Store> store_;
};

}  // namespace

int simulate_command(const Words& words) {
  const Usage usage = simulate_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  if (arguments.has("allocation")) return simulate_allocation(arguments);
  if (arguments.has("planner")) return simulate_planner(arguments);
  const std::atomic<int>& stop = catch_stop_signals();
  const std::optional<std::string> kept = arguments.get<std::string>("keep");
  const std::optional<std::string> recorded = arguments.get<std::string>("curves");
  if (kept) check_is_new(*kept);
  const StudyConfig config = load_config(arguments.required("CONFIG.yaml"), overrides_from(arguments));
  tell_warnings(config);
  if (config.choice) tell(config.choice->text());
  const std::unique_ptr<Curves> curves = recorded ? read_curves(*recorded, config) : make_invented_curves(config);
  SimulationOptions options = devices_from(arguments.get<std::string>("devices").value_or("1"));
  options.prior = read_prior(config);
  const Faults faults;
  MemoryFiles files(faults);
  SimulatedStore store(kept);
  const SystemClock clock;
  const double start = clock.seconds();
  const Outcome outcome = simulate(config, *curves, options, store.get(), files, faults, stop);
  if (outcome.stopped_by != 0) return 128 + outcome.stopped_by;
  print(report_table(read_report(store.get(), config.study), kTopTrials));
  print(fmt::format("simulated: {} on {} device{}; computed in {}\n", duration_text(outcome.seconds), options.devices,
                    options.devices == 1 ? "" : "s", duration_text(clock.seconds() - start)));
  store.keep();
  return outcome.any_complete || !outcome.ended_by.empty() ? 0 : 1;
}

}  // namespace hfta::engine
