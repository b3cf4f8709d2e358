// hfta-tune CONFIG.yaml, hfta-tune resume

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/faults.hpp"
#include "base/files.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "engine/cli/activity.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/event_lines.hpp"
#include "engine/cli/output.hpp"
#include "engine/cli/places.hpp"
#include "engine/cli/progress_view.hpp"
#include "engine/cli/signals.hpp"
#include "engine/cli/warm_start.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/driver.hpp"
#include "engine/driver/study/lease.hpp"
#include "engine/driver/study/leftovers.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/report/report.hpp"
#include "storage/checkpoints.hpp"
#include "storage/stores/stores.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using storage::Store;

constexpr int kTopTrials = 10;

void add_json_option(boost::program_options::options_description& options) {
  options.add_options()("json", "events on standard output, one JSON object per line, in place of the report");
}

OutputMode output_mode_from(const Arguments& arguments) {
  return arguments.has("json") ? OutputMode::kEvents : OutputMode::kReport;
}

Usage run_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune CONFIG.yaml [options]";
  usage.about = "Runs a study, or goes on with it where it stopped. A finished study prints its report.\n";
  add_override_options(usage.options);
  add_json_option(usage.options);
  usage.options.add_options()("fresh", "a new study beside the old one: <study>-2, -3, ...");
  usage.positional = {"CONFIG.yaml"};
  return usage;
}

Usage resume_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune resume STUDY --storage URL [options]";
  usage.about = "Goes on with a study from its store alone: the config is in it.\n";
  add_storage_option(usage.options);
  add_override_options(usage.options);
  add_json_option(usage.options);
  usage.positional = {"STUDY"};
  return usage;
}

// The overrides that stay with the study: not those that say where it lies, nor where and how wide it runs.
ConfigOrigin origin_from(const fs::path& file, const std::vector<Override>& overrides) {
  ConfigOrigin origin{fs::absolute(file).lexically_normal(), {}};
  for (const Override& o : overrides) {
    const std::string top = o.key_path.substr(0, o.key_path.find('.'));
    if (top != "array" && top != "memory" && top != "storage") origin.overrides.push_back(o);
  }
  return origin;
}

RunEnded run_ended(Store& store, const StudyConfig& config, bool finished) {
  const std::vector<trials::Trial> trials = store.trials(config.study);
  const std::vector<const trials::Trial*> best = best_trials(config, store, trials);
  if (!config.has_several_objectives()) return {finished, best_complete(best.empty() ? nullptr : best.front())};
  return {finished, std::nullopt, numbers_of(best)};
}

int finish(Store& store, const StudyConfig& config, bool any_complete, OutputMode mode) {
  const ReportInput input = read_report(store, config.study);
  if (mode == OutputMode::kEvents) {
    EventLines(mode).take(run_ended(store, config, true));
  } else {
    print(report_table(input, kTopTrials));
  }
  const auto waiting = std::count_if(input.trials.begin(), input.trials.end(),
                                     [](const auto& t) { return t.state == trials::State::kWaiting; });
  if (waiting > 0) tell(fmt::format("{} enqueued, for which run_cap has no room; --trials raises it", waiting));
  if (any_complete) return 0;
  // The report has the best so far of a study that its budget ended before a trial was COMPLETE.
  const auto has_value = [&](const trials::Trial& t) { return latest_value(t, input.objectives).has_value(); };
  if (!input.ended_by.empty() && std::any_of(input.trials.begin(), input.trials.end(), has_value)) return 0;
  const auto failed =
      std::find_if(input.trials.begin(), input.trials.end(), [](const auto& t) { return !t.reason.empty(); });
  tell(fmt::format("study '{}' has ended and {}{}", config.study, trials::why_none_is_best(input.trials),
                   failed == input.trials.end() ? "" : fmt::format("; trial {}: {}", failed->number, failed->reason)));
  return 1;
}

bool any_complete(Store& store, const StudyConfig& config) {
  return !trials::best_of(store.trials(config.study), config.objectives).empty();
}

void tell_start(const StudyConfig& config, const Fleet& fleet, bool is_new) {
  if (config.choice && !config.choice->reason.empty()) tell(config.choice->text());
  tell(fmt::format("{} study '{}' on {}, store {}", is_new ? "running" : "going on with", config.study,
                   join(fleet.devices), config.storage));
}

RunStarted run_started(const StudyConfig& config, const std::vector<std::string>& devices, bool resumed) {
  return {config.study, config.storage, config.objectives, devices, resumed};
}

int drive(const StudyConfig& config, Store& store, const StudyLease& lease, Fleet& fleet, const std::atomic<int>& stop,
          OutputMode mode) {
  SystemClock clock;
  const Faults faults = faults_from_environment();
  const storage::StatesPlace place = store.states(config.study);
  SystemFiles files(faults, place.root, [&lease] { lease.check_held(); });
  store.use(faults);
  storage::StudyStates states(files, place.folder);
  std::deque<Activity> activities;  // a deque, so that they do not move
  std::vector<std::unique_ptr<Trainer>> watching;
  std::vector<Trainer*> trainers;
  for (std::size_t i = 0; i < fleet.trainers.size(); ++i) {
    activities.emplace_back(i < fleet.devices.size() ? fleet.devices[i] : "a device", clock);
    watching.push_back(watched(*fleet.trainers[i], activities.back()));
    trainers.push_back(watching.back().get());
  }
  ProgressView view(clock, activities);
  EventLines lines(mode, &view);
  const std::unique_ptr<DeviceWorkers> workers = make_threads(trainers.size(), clock);
  DriverDependencies dependencies{store, trainers, *workers, clock, states, lines, stop, faults};
  dependencies.state_memory = usable_memory() / 4;
  Driver driver(config, dependencies);
  const Outcome outcome = driver.run();
  view.clear();
  if (outcome.stopped_by == 0) return finish(store, config, outcome.any_complete, mode);
  EventLines(mode).take(run_ended(store, config, false));
  tell(fmt::format("stopped after {} rounds; everything is kept. To go on: hfta-tune resume '{}' --storage '{}'",
                   outcome.rounds, config.study, config.storage));
  return 128 + outcome.stopped_by;
}

// Whether nothing has to be read to know that a finished study is of the files that the config names: none was written
// since. Of files that are gone the study is all there is.
bool is_of_its_files(const storage::StudyRecord& stored, const StudyConfig& config) {
  std::vector<fs::path> changed = changed_files(stored, config.folder);
  const auto gone = std::stable_partition(changed.begin(), changed.end(), [](const fs::path& file) {
    std::error_code error;
    return fs::exists(file, error);
  });
  if (gone != changed.begin()) return false;
  for (auto file = gone; file != changed.end(); ++file) {
    tell(fmt::format("'{}' is gone; study '{}' was trained with it before", printable(file->string()), config.study));
  }
  return true;
}

// Runs a study. Creates nothing before the config is checked, the data are loaded and the device is there.
int run_study(const StudyConfig& config, const ConfigOrigin& origin, OutputMode mode) {
  const std::atomic<int>& stop = catch_stop_signals();
  tell_warnings(config);
  const SystemClock clock;
  std::unique_ptr<Store> store = storage::open_store_if_made(config.storage, storage::OpenMode::kReadWrite);
  std::optional<storage::StudyRecord> stored;
  std::optional<StudyLease> lease;
  const auto take = [&] { lease.emplace(*store, config.study, clock); };
  if (store) stored = store->find(config.study);
  if (stored) {
    const storage::StudyRecord next = continued(*stored, config, origin);
    if (is_finished(*store, config, next) && is_of_its_files(*stored, config)) {
      const Faults none;
      SystemFiles files(none, store->states(config.study).root);
      remove_leftovers(*store, config, next, files, clock);
      EventLines(mode).take(run_started(config, {}, true));
      return finish(*store, config, any_complete(*store, config), mode);
    }
    take();
  }
  Fleet fleet = make_fleet(config, cache_folder());
  if (stop.load() != 0) return 128 + stop.load();
  const search::History prior = stored ? search::History() : read_prior(config);
  if (!stored) check_draws(config, prior);
  if (!store) store = storage::open_store(config.storage, storage::OpenMode::kCreate);
  if (!lease) take();
  const Trainer& trainer = *fleet.trainers.front();
  const StudyFiles files = {trainer.models(), trainer.data()};
  // Another process may have begun the study, or raised its cap, before this one had the lease.
  stored = store->find(config.study);
  if (stored) {
    store->update(continued(*stored, config, origin, files));
  } else {
    store->create(new_record(config, origin, files, prior));
  }
  tell_notes(files.models);
  tell_start(config, fleet, !stored);
  EventLines(mode).take(run_started(config, fleet.devices, stored.has_value()));
  return drive(config, *store, *lease, fleet, stop, mode);
}

// Paths in a config are relative to its folder. A store that was moved still names the old one.
void tell_moved(const StudyConfig& config) {
  std::error_code error;
  if (fs::exists(config.folder, error)) return;
  tell(fmt::format(
      "'{}', from which study '{}' was begun, is gone; where its files were moved along, go on with hfta-tune "
      "CONFIG.yaml",
      printable(config.folder.string()), config.study));
}

// A quoted text that YAML reads as itself, even if it has signs of YAML's syntax.
std::string yaml_text(const std::string& text) { return nlohmann::json(text).dump(); }

// The config under another name, where --fresh asks for one.
StudyConfig load_fresh(const fs::path& file, std::vector<Override>& overrides) {
  StudyConfig config = load_config(file, overrides);
  const std::unique_ptr<Store> store = storage::open_store_if_made(config.storage, storage::OpenMode::kReadOnly);
  if (!store || !store->find(config.study)) return config;
  overrides.push_back({"study", yaml_text(fresh_name(*store, config.study))});
  // The new study goes to the old one's store, not to a file of its own.
  overrides.push_back({"storage", yaml_text(storage::absolute_store(config.storage))});
  return load_config(file, overrides);
}

}  // namespace

int run_command(const Words& words) {
  const Usage usage = run_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const fs::path file = arguments.required("CONFIG.yaml");
  std::vector<Override> overrides = overrides_from(arguments);
  const StudyConfig config = arguments.has("fresh") ? load_fresh(file, overrides) : load_begun(file, overrides);
  return run_study(config, origin_from(file, overrides), output_mode_from(arguments));
}

int resume_command(const Words& words) {
  const Usage usage = resume_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string study = arguments.required("STUDY");
  const auto [config, origin] = [&] {
    return stored_config(*open_store(arguments), study, arguments.required("storage"), overrides_from(arguments));
  }();
  tell_moved(config);
  return run_study(config, origin_from(origin.file, origin.overrides), output_mode_from(arguments));
}

}  // namespace hfta::engine
