#include "engine/driver/study/redraw.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/draws/draw_history.hpp"
#include "engine/driver/draws/strategy.hpp"
#include "engine/driver/goals/measure.hpp"
#include "engine/driver/goals/selection.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "search/repetition.hpp"

namespace hfta::engine {
namespace {

/// The rounds in which a study's trials trained their epochs, by (trial, epoch). An epoch that was trained again counts
/// when it was trained first.
using RoundOf = std::map<std::pair<int, int>, int>;

RoundOf rounds_of(storage::Store& store, const std::string& study) {
  RoundOf rounds;
  for (const storage::OccupancyRecord& place : store.occupancy(study)) {
    rounds.emplace(std::pair(place.trial, place.epoch), place.round);  // records come in order of round
  }
  return rounds;
}

/// Tells `history` what happened to a trial before `seen` rounds were over.
void tell(const StudyConfig& config, const trials::Trial& trial, int draw, int seen, const RoundOf& rounds,
          DrawHistory& history) {
  history.add(trial.params);
  std::vector<double> values;
  for (const trials::EpochRecord& record : trial.epochs) {
    const auto found = rounds.find({trial.number, record.epoch});
    if (found == rounds.end() || found->second >= seen) break;
    const Measurement measured = measure(record.metrics, config.objectives, record.epoch);
    const bool failed = !measured.failure.empty();
    const bool counts = !failed && is_selected(config, measured.values.front(), trials::first_of(values));
    if (counts) values = measured.values;
    history.report(draw, failed, values);
  }
  const bool done = trial.state != trials::State::kRunning && trial.state != trials::State::kWaiting;
  if (done) history.end(draw, trial.state, trial.ended_round);
}

/// The configuration that draw `number` gives. Some draws are made for the partition of another trial, which is not
/// recorded (TrialTable::plan()): it is such a draw if asking for the trial's own partition gives what the trial has.
trials::Params asked(const StudyConfig& config, const trials::Trial& trial, int number, const search::History& seen,
                     search::Sampler& sampler) {
  const trials::Params stored = config.repetitions.configuration_of(trial.params);
  trials::Params drawn = std::move(sampler.ask(number, 1, seen).at(0));
  if (drawn == stored) return drawn;
  trials::Params joined = std::move(sampler.ask(number, 1, seen, config.splitting(stored)).at(0));
  return joined == stored ? joined : drawn;
}

}  // namespace

std::vector<Redraw> redraw(const StudyConfig& config, storage::Store& store) {
  const std::optional<storage::StudyRecord> study = store.find(config.study);
  if (!study) return {};
  const Strategy strategy = make_strategy(config, study->run_caps, prior_of(*study));
  if (!strategy.sampler->learns()) return {};
  const std::vector<trials::Trial> drawn = drawn_trials(store, config.study);
  const RoundOf rounds = rounds_of(store, config.study);
  std::vector<Redraw> all;
  int first = 0;
  const trials::Repetitions& repetitions = config.repetitions;
  for (int draw = 0; draw < static_cast<int>(drawn.size()); ++draw) {
    const trials::Trial& trial = drawn[static_cast<std::size_t>(draw)];
    if (trial.enqueued || repetitions.index_of(draw) != 0) continue;
    if (trial.seen_rounds) {
      DrawHistory history;
      for (int earlier = 0; earlier < draw; ++earlier) {
        tell(config, drawn[static_cast<std::size_t>(earlier)], earlier, *trial.seen_rounds, rounds, history);
      }
      const search::History seen =
          search::by_configuration(history.after(*trial.seen_rounds), repetitions, config.objectives.front().goal);
      all.push_back(
          {trial.number, trial.params, repetitions.params_of(asked(config, trial, first, seen, *strategy.sampler), 0)});
    }
    ++first;
  }
  return all;
}

}  // namespace hfta::engine
