#pragma once
/// A study as people and programs read it: table, JSON, CSV. Made from stored records alone, without torch.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/report/occupancy.hpp"
#include "storage/store.hpp"
#include "trials/repetition.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The process that has a study.
struct Runner {
  std::string holder;             ///< "process 4711 on host adele"
  bool alive = false;             ///< Whether it lives, as far as this host can tell.
  std::optional<double> silence;  ///< Seconds since its last heartbeat; unset: it has released the study.
};

/// The data that a report is made from. Trials that Optuna added are in it like any other.
struct ReportInput {
  std::string study;
  trials::Objectives objectives = {{}};               ///< A metric without a name is called "value".
  std::vector<trials::Trial> trials;                  ///< In order of number.
  std::vector<storage::ArrayRecord> arrays = {};      ///< They name the devices that rounds ran on.
  std::vector<storage::RoundRecord> rounds = {};      ///< They have the time that training took.
  std::vector<storage::OccupancyRecord> places = {};  ///< In order of round.
  std::optional<Occupancy> occupancy = {};            ///< Absent without rounds.
  std::optional<Runner> runner = {};  ///< The process that ran the study last; unset if none has, or if not requested.
  std::vector<std::string> damage = {};  ///< Records that are not as they were written, a line each; see Store::Damage.
  std::string ended_by = {};             ///< The budget or target that ended the study; "": neither did.
  std::string method = {};               ///< The method of search; "" where the study was not made by us.
  std::string method_reason = {};        ///< Why `method: auto` chose it; "" where the config names it.
  bool select_best = false;              ///< metric.select: a trial's value is its best epoch's, not its last one's.
  trials::Repetitions repetitions = {};
  std::vector<int> draws = {};  ///< With repetitions: the number of each draw, in order.
  std::optional<std::vector<double>> reference =
      {};  ///< Point that a hypervolume is measured from, one number per objective.
};

/// Reads a study. Throws Error{kConfig} naming the nearest study if there is none of that name,
/// Error{kStorage} if the study or its record is damaged.
[[nodiscard]] ReportInput read_report(storage::Store& store, const std::string& study);

/// The number of trials in each state, by Optuna's names; only states that occur.
[[nodiscard]] std::map<std::string, int> count_states(const std::vector<trials::Trial>& trials);

/// The latest value of a trial: its value or, while it has none, the first objective's after its last epoch.
[[nodiscard]] std::optional<double> latest_value(const trials::Trial& trial, const trials::Objectives& objectives);
/// The latest value of each objective.
[[nodiscard]] std::vector<std::optional<double>> latest_values(const trials::Trial& trial,
                                                               const trials::Objectives& objectives);

/// Trials from the best to the worst: COMPLETE by value, then RUNNING by latest_value, then PRUNED by value, then
/// WAITING, then FAIL; ties to the lower number. With several objectives COMPLETE ones by front, then from the least
/// crowded one on (front_places()), and others by number.
[[nodiscard]] std::vector<const trials::Trial*> ranked(const std::vector<trials::Trial>& trials,
                                                       const trials::Objectives& objectives);

/// A text: the method if `auto` chose it, counts, who runs the study, the best COMPLETE trial with its parameters,
/// test metrics and confusion matrices (of several objectives the front's size and hypervolume instead), while trials
/// are RUNNING the best so far, the `top` best configurations (with repetitions) and trials in columns, how the slots
/// were used, how arrays ran and what they held of memory.
[[nodiscard]] std::string report_table(const ReportInput& input, int top);

/// A JSON object: study, metric, direction, with several objectives these and the front, method, counts, best, runner,
/// occupancy, ways, with repetitions also these and the configurations (best first), trials (by number; with `top` the
/// best so many, best first). Numbers round-trip exactly; what is absent or not finite is null. Ends with a newline.
[[nodiscard]] std::string report_json(const ReportInput& input, std::optional<int> top);

/// The study's events, as its runs told them: lines of event_json(), see docs/events.md. PRUNED and FAIL are told
/// behind all rounds where the store does not say when they were, and there are no notes and no `status`.
[[nodiscard]] std::string report_events(const ReportInput& input);

/// A header line and one line per trial, in the same order as the JSON, with repetitions also what its configuration
/// has come to; RFC 4180 quoting; absent values are empty.
[[nodiscard]] std::string report_csv(const ReportInput& input, std::optional<int> top);

/// The studies of a store. With repetitions the best value is that of the best configuration, as in a report; a study
/// that is damaged keeps what the store says.
[[nodiscard]] std::vector<storage::StudySummary> read_studies(storage::Store& store);

/// The output of `hfta-tune studies`.
[[nodiscard]] std::string studies_table(const std::vector<storage::StudySummary>& studies);
[[nodiscard]] std::string studies_json(const std::vector<storage::StudySummary>& studies);

}  // namespace hfta::engine
