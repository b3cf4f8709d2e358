#include "storage/memory/memory_store.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/checkpoints.hpp"
#include "storage/memory/memory_content.hpp"

namespace hfta::storage {
namespace {

using trials::State;

// The value as every store keeps it: minus zero becomes zero.
double kept(double value) { return value + 0.0; }

std::map<std::string, double> kept(std::map<std::string, double> metrics) {
  for (auto& [name, value] : metrics) value = kept(value);
  return metrics;
}

void replace(std::vector<trials::EpochRecord>& epochs, const trials::EpochRecord& record) {
  const auto place = std::lower_bound(epochs.begin(), epochs.end(), record.epoch,
                                      [](const auto& before, int epoch) { return before.epoch < epoch; });
  const bool is_there = place != epochs.end() && place->epoch == record.epoch;
  if (is_there && record.metrics.empty()) {
    epochs.erase(place);
  } else if (is_there) {
    place->metrics = kept(record.metrics);
  } else if (!record.metrics.empty()) {
    epochs.insert(place, {record.epoch, kept(record.metrics)});
  }
}

// Throws if `changes` cannot be written, before anything is.
void check(MemoryStudy& study, const Changes& changes) {
  for (const auto& [number, when] : changes.started) (void)study.trial(number);
  for (const Changes::Epoch& epoch : changes.epochs) (void)study.trial(epoch.trial);
  for (const CopyRecord& change : changes.copies) {
    (void)study.trial(change.trial);
    (void)study.trial(change.copy.source);
    (void)study.checked(change.copy.params);
  }
  for (const StateChange& change : changes.states) {
    (void)study.trial(change.trial);
    (void)values_to_store(change, study.record.objectives.size());
  }
  for (const OccupancyRecord& o : changes.occupancy) (void)study.trial(o.trial);
  for (const auto& [number, metrics] : changes.test_metrics) (void)study.trial(number);
}

void write(MemoryStudy& study, const CopyRecord& change) {
  std::vector<trials::Copy>& copies = study.trial(change.trial).row.copies;
  trials::Copy copy{change.copy.epoch, change.copy.source, {}};
  const trials::Params given = study.checked(change.copy.params);
  for (const auto& [name, drawn] : study.trial(change.trial).row.params) {
    const auto found =
        std::find_if(given.begin(), given.end(), [&, wanted = name](const auto& one) { return one.first == wanted; });
    if (found != given.end()) copy.params.push_back(*found);
  }
  const auto place = std::lower_bound(copies.begin(), copies.end(), copy.epoch,
                                      [](const trials::Copy& before, int epoch) { return before.epoch < epoch; });
  if (place != copies.end() && place->epoch == copy.epoch) {
    *place = std::move(copy);
  } else {
    copies.insert(place, std::move(copy));
  }
}

void write(MemoryStudy& study, const StateChange& change) {
  MemoryTrial& trial = study.trial(change.trial);
  trial.row.state = change.state;
  trial.row.completed = has_ended(change.state) ? std::optional(change.when) : std::nullopt;
  trial.row.values = values_to_store(change, study.record.objectives.size());
  for (double& value : trial.row.values) value = kept(value);
  if (trial.is_ours) trial.row.reason = change.reason;
  if (change.round) trial.row.ended_round = change.round;
}

void write(MemoryStudy& study, const Changes& changes) {
  for (const auto& [number, when] : changes.started) study.trial(number).row.started = when;
  for (const Changes::Epoch& epoch : changes.epochs) replace(study.trial(epoch.trial).row.epochs, epoch.record);
  for (const CopyRecord& change : changes.copies) write(study, change);
  for (const StateChange& change : changes.states) write(study, change);
  for (const ArrayRecord& array : changes.arrays) study.arrays[array.array] = array;
  for (const RoundRecord& round : changes.rounds) {
    RoundRecord& row = study.rounds[{round.round, round.array}] = round;
    row.seconds = kept(round.seconds);
  }
  for (const OccupancyRecord& o : changes.occupancy) study.occupancy[{o.round, o.array, o.slot}] = o;
  for (const auto& [number, metrics] : changes.test_metrics) {
    for (const auto& [name, value] : metrics) study.trial(number).row.test_metrics[name] = kept(value);
  }
  if (changes.progress) study.record.progress = *changes.progress;
}

void add(StudySummary& summary, const trials::Trial& trial) {
  ++summary.counts[trials::name_of(trial.state)];
  for (const std::optional<trials::UtcTime>& time : {trial.started, trial.completed}) {
    if (time && (!summary.last_change || *time > *summary.last_change)) summary.last_change = time;
  }
  if (summary.objectives.size() > 1) return;
  const std::optional<double> value = trials::value_to_rank(trial);
  if (!value) return;
  const trials::Goal goal = summary.objectives.front().goal;
  if (!summary.best || trials::better(*value, *summary.best, goal)) summary.best = value;
}

template <typename Map>
auto values_of(const Map& map) {
  std::vector<typename Map::mapped_type> values;
  values.reserve(map.size());
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

}  // namespace

MemoryTrial& MemoryStudy::trial(int number) {
  if (number < 0 || static_cast<std::size_t>(number) >= trials.size()) throw no_trial(number, trials.size());
  return trials[static_cast<std::size_t>(number)];
}

trials::Params MemoryStudy::checked(const trials::Params& params) const {
  trials::Params found = params;
  for (auto& [name, value] : found) {
    const EncodedParam encoded = encode(distributions, name, value);
    // Takes the choice itself: an equal value need not be the same one (minus zero).
    if (encoded.exact) value = decode(distributions.at(name), encoded.value);
  }
  return found;
}

void MemoryStudy::draw(int number, trials::Params params, trials::UtcTime when) {
  MemoryTrial& drawn = trial(number);
  drawn.is_ours = true;
  drawn.row.params = std::move(params);
  drawn.row.started = when;
  draws.push_back(number);
}

MemoryStudy& MemoryStudies::Content::study(const std::string& wanted) {
  const auto found = std::find_if(studies.begin(), studies.end(),
                                  [&](const MemoryStudy& study) { return study.record.name == wanted; });
  if (found != studies.end()) return *found;
  std::vector<std::string> names;
  for (const MemoryStudy& study : studies) names.push_back(printable(study.record.name));
  throw no_study(printable(name.string()), wanted, names);
}

MemoryStudies::MemoryStudies(std::filesystem::path name) : content_(std::make_unique<Content>()) {
  content_->name = std::move(name);
}
MemoryStudies::~MemoryStudies() = default;

int MemoryStudies::enqueue(const std::string& study, const trials::Params& params) {
  const std::lock_guard guard(content_->mutex);
  MemoryStudy& known = content_->study(study);
  MemoryTrial trial;
  trial.row.number = static_cast<int>(known.trials.size());
  trial.row.state = State::kWaiting;
  trial.wanted = params;
  known.trials.push_back(std::move(trial));
  ++content_->writes;
  return known.trials.back().row.number;
}

void MemoryStore::count_write() {
  ++writes_;
  ++content_.writes;
}

std::vector<StudySummary> MemoryStore::studies() {
  const std::lock_guard guard(content_.mutex);
  std::vector<StudySummary> list;
  for (const MemoryStudy& study : content_.studies) {
    StudySummary& summary = list.emplace_back();
    summary.name = study.record.name;
    summary.objectives = study.record.objectives;
    for (const MemoryTrial& trial : study.trials) add(summary, trial.row);
  }
  return list;
}

std::optional<StudyRecord> MemoryStore::find(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  for (const MemoryStudy& known : content_.studies) {
    if (known.record.name == study) return known.record;
  }
  return std::nullopt;
}

void MemoryStore::create(const StudyRecord& study) {
  const std::lock_guard guard(content_.mutex);
  check_lease(study.name);
  const std::string place = printable(content_.name.string());
  if (study.name.empty()) throw name_is_empty(place);
  for (const MemoryStudy& known : content_.studies) {
    if (known.record.name == study.name) throw name_is_taken(place, study.name);
  }
  check_words(study);
  MemoryStudy made;
  made.record = study;
  made.distributions = distributions_of(study.space);
  content_.studies.push_back(std::move(made));
  count_write();
}

void MemoryStore::update(const StudyRecord& study) {
  const std::lock_guard guard(content_.mutex);
  check_lease(study.name);
  StudyRecord& record = content_.study(study.name).record;
  record.config = study.config;
  record.config_json = study.config_json;
  record.run_caps = study.run_caps;
  count_write();
}

std::vector<int> MemoryStore::add_trials(const std::string& study, const std::vector<NewTrial>& trials,
                                         trials::UtcTime when) {
  const std::lock_guard guard(content_.mutex);
  check_lease(study);
  MemoryStudy& known = content_.study(study);
  std::vector<trials::Params> checked;
  checked.reserve(trials.size());
  for (const NewTrial& trial : trials) checked.push_back(known.checked(trial.params));
  std::vector<int> numbers;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    numbers.push_back(static_cast<int>(known.trials.size()));
    trials::Trial& row = known.trials.emplace_back().row;
    row.number = numbers.back();
    row.seen_rounds = trials[i].seen_rounds;
    known.draw(numbers.back(), std::move(checked[i]), when);
  }
  if (!numbers.empty()) count_write();
  return numbers;
}

std::vector<EnqueuedTrial> MemoryStore::enqueued(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  std::vector<EnqueuedTrial> waiting;
  for (const MemoryTrial& trial : content_.study(study).trials) {
    if (trial.row.state == State::kWaiting && !trial.is_ours) waiting.push_back({trial.row.number, trial.wanted});
  }
  return waiting;
}

bool MemoryStore::claim(const std::string& study, int number, const trials::Params& params, trials::UtcTime when,
                        const std::string& failure) {
  const std::lock_guard guard(content_.mutex);
  check_lease(study);
  MemoryStudy& known = content_.study(study);
  trials::Trial& row = known.trial(number).row;
  if (row.state != State::kWaiting) return false;
  known.draw(number, known.checked(params), when);
  row.enqueued = true;
  row.state = failure.empty() ? State::kRunning : State::kFail;
  row.reason = failure;
  if (!failure.empty()) row.completed = when;
  count_write();
  return true;
}

bool MemoryStore::changed_outside() {
  const std::lock_guard guard(content_.mutex);
  const std::uint64_t others = content_.writes - writes_;
  return std::exchange(seen_, others) != others;
}

std::vector<trials::Trial> MemoryStore::trials(const std::string& study, Damage /*damage*/) {
  const std::lock_guard guard(content_.mutex);
  const MemoryStudy& known = content_.study(study);
  std::vector<trials::Trial> rows;
  rows.reserve(known.trials.size());
  for (const MemoryTrial& trial : known.trials) rows.push_back(trial.row);
  return rows;
}

std::vector<int> MemoryStore::draws(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  return content_.study(study).draws;
}

std::vector<ArrayRecord> MemoryStore::arrays(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  return values_of(content_.study(study).arrays);
}

std::vector<RoundRecord> MemoryStore::rounds(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  return values_of(content_.study(study).rounds);
}

std::vector<OccupancyRecord> MemoryStore::occupancy(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  return values_of(content_.study(study).occupancy);
}

void MemoryStore::commit(const std::string& study, const Changes& changes) {
  if (changes.empty()) return;
  const std::lock_guard guard(content_.mutex);
  check_lease(study);
  MemoryStudy& known = content_.study(study);
  check(known, changes);
  if (faults_ != nullptr) faults_->reach("in-transaction");
  write(known, changes);
  count_write();
}

void MemoryStore::check_lease(const std::string& study) const {
  const auto mine = held_.find(study);
  if (mine == held_.end()) return;
  const auto now = content_.leases.find(study);
  if (now != content_.leases.end() && now->second == mine->second) return;
  throw lease_is_lost(printable(content_.name.string()), study,
                      now == content_.leases.end() ? std::nullopt : std::optional(now->second));
}

std::optional<Lease> MemoryStore::lease(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  const auto found = content_.leases.find(study);
  return found == content_.leases.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Lease> MemoryStore::take_lease(const std::string& study, const std::optional<Lease>& seen,
                                             const std::string& token, const std::string& holder) {
  const std::lock_guard guard(content_.mutex);
  const auto found = content_.leases.find(study);
  if ((found == content_.leases.end() ? std::nullopt : std::optional(found->second)) != seen) return std::nullopt;
  count_write();
  return content_.leases[study] = next_lease(seen, token, holder);
}

void MemoryStore::check_held(const std::string& study) {
  const std::lock_guard guard(content_.mutex);
  check_lease(study);
}

StatesPlace MemoryStore::states(const std::string& study) const {
  return {content_.name.parent_path(), checkpoint_folder(content_.name, study)};
}

}  // namespace hfta::storage
