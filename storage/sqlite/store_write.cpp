#include <fmt/format.h>

#include <map>
#include <set>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/objectives.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Params;

/// The parameters that Optuna's doubles cannot hold, as JSON by name; nullopt if there are none.
class ExactParams {
 public:
  void add(const std::string& name, const trials::ParamValue& value) { json_[name] = param_to_json(value); }
  [[nodiscard]] std::optional<std::string> text() const {
    if (json_.empty()) return std::nullopt;
    return dump(json_);
  }

 private:
  nlohmann::json json_ = nlohmann::json::object();
};

/// Digests that a transaction adds to those of trials, by trial_id: each is read and written once.
using DigestChanges = std::map<std::int64_t, Digest>;

void write_digests(Connection& connection, const DigestChanges& changes) {
  for (const auto& [trial_id, change] : changes) {
    Digest digest = change;
    {
      Query query = connection.query("SELECT digest FROM hfta_trials WHERE trial_id = ?1");
      query.bind(trial_id);
      if (!query.next() || query.is_null(0)) continue;  // rows of an earlier schema have no digest
      digest += Digest(query.integer(0));
    }
    connection.query("UPDATE hfta_trials SET digest = ?2 WHERE trial_id = ?1").bind(trial_id, digest.stored()).run();
  }
}

/// Returns the digest of what it wrote.
Digest add_params(Connection& connection, const Distributions& distributions, std::int64_t trial_id,
                  const Params& params, ExactParams& exact) {
  Digest digest;
  Query insert = connection.query(
      "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?1, ?2, ?3, ?4)");
  for (const auto& [name, value] : params) {
    const EncodedParam encoded = encode(distributions, name, value);
    insert.bind(trial_id, name, encoded.value, encoded.distribution_json).run();
    digest += Digest::of(Part::kParam, trial_id, name, encoded.value, encoded.distribution_json);
    if (!encoded.exact) exact.add(name, value);
  }
  return digest;
}

void write_start(Connection& connection, std::int64_t trial_id, const std::string& when, Digest& digest) {
  {
    Query query = connection.query("SELECT datetime_start FROM trials WHERE trial_id = ?1");
    if (query.bind(trial_id).next()) digest -= Digest::of(Part::kStarted, trial_id, query.view(0));
  }
  connection.query("UPDATE trials SET datetime_start = ?2 WHERE trial_id = ?1").bind(trial_id, when).run();
  digest += Digest::of(Part::kStarted, trial_id, when);
}

void write_epoch(Connection& connection, std::int64_t trial_id, const Changes::Epoch& epoch, Digest& digest) {
  {
    Query query =
        connection.query("SELECT name, value, value_type FROM hfta_epoch_metrics WHERE trial_id = ?1 AND epoch = ?2");
    query.bind(trial_id, epoch.record.epoch);
    while (query.next()) {
      digest -= Digest::of(Part::kEpoch, trial_id, epoch.record.epoch, query.view(0), query.number(1), query.view(2));
    }
  }
  connection.query("DELETE FROM hfta_epoch_metrics WHERE trial_id = ?1 AND epoch = ?2")
      .bind(trial_id, epoch.record.epoch)
      .run();
  Query insert = connection.query(
      "INSERT INTO hfta_epoch_metrics (trial_id, epoch, name, value, value_type) VALUES (?1, ?2, ?3, ?4, ?5)");
  for (const auto& [name, value] : epoch.record.metrics) {
    const StoredNumber number = to_columns(value);
    insert.bind(trial_id, epoch.record.epoch, name, number.value, number.type).run();
    digest += Digest::of(Part::kEpoch, trial_id, epoch.record.epoch, name, number.value, number.type);
  }
  if (!epoch.value) {
    connection.query("DELETE FROM trial_intermediate_values WHERE trial_id = ?1 AND step = ?2")
        .bind(trial_id, epoch.record.epoch)
        .run();
    return;
  }
  const StoredNumber number = to_columns(*epoch.value);
  connection
      .query(
          "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type)"
          " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (trial_id, step) DO UPDATE SET"
          " intermediate_value = excluded.intermediate_value, intermediate_value_type = "
          "excluded.intermediate_value_type")
      .bind(trial_id, epoch.record.epoch, number.value, number.type)
      .run();
}

// Optuna's rows keep the parameters as they were drawn; those of the copy are kept exactly, in the attribute alone.
void write_copy(Connection& connection, const Distributions& distributions, std::int64_t trial_id,
                const trials::Copy& copy, Digest& digest) {
  const std::string key = kCopyKey + std::to_string(copy.epoch);
  nlohmann::json params = nlohmann::json::object();
  for (const auto& [name, value] : copy.params) {
    (void)encode(distributions, name, value);
    params[name] = param_to_json(value);
  }
  const std::string text = dump({{"source", copy.source}, {"params", params}});
  {
    Query query =
        connection.query("SELECT value_json FROM trial_system_attributes WHERE trial_id = ?1 AND \"key\" = ?2");
    if (query.bind(trial_id, key).next()) digest -= Digest::of(Part::kCopy, trial_id, key, query.view(0));
  }
  set_attribute(connection, trial_id, key.c_str(), text);
  digest += Digest::of(Part::kCopy, trial_id, key, text);
}

void write_values(Connection& connection, std::int64_t trial_id, const std::vector<double>& values) {
  if (values.empty()) {
    connection.query("DELETE FROM trial_values WHERE trial_id = ?1").bind(trial_id).run();
    return;
  }
  Query insert = connection.query(
      "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?1, ?2, ?3, ?4)"
      " ON CONFLICT (trial_id, objective) DO UPDATE SET value = excluded.value, value_type = excluded.value_type");
  for (std::size_t objective = 0; objective < values.size(); ++objective) {
    const StoredNumber number = to_columns(values[objective]);
    insert.bind(trial_id, static_cast<std::int64_t>(objective), number.value, number.type).run();
  }
}

void write_state(Connection& connection, std::int64_t trial_id, const StateChange& change, std::size_t objectives) {
  const bool ends = has_ended(change.state);
  std::optional<std::string> completed;
  if (ends) completed = utc_text(change.when);
  connection.query("UPDATE trials SET state = ?2, datetime_complete = ?3 WHERE trial_id = ?1")
      .bind(trial_id, trials::name_of(change.state), completed)
      .run();
  if (connection.changes() != 1) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: trial {} was removed by another program",
                                                 printable(connection.path().string()), change.trial));
  }
  connection.query("UPDATE hfta_trials SET reason = ?2, end_digest = NULL WHERE trial_id = ?1")
      .bind(trial_id, change.reason)
      .run();
  if (change.round) set_attribute(connection, trial_id, kEndRoundKey, std::to_string(*change.round));
  write_values(connection, trial_id, values_to_store(change, objectives));
  if (ends) write_end_digest(connection, trial_id);
}

void write_tests(Connection& connection, std::int64_t trial_id, const std::map<std::string, double>& metrics) {
  for (const auto& [name, value] : metrics) {
    const StoredNumber number = to_columns(value);
    connection
        .query("INSERT OR REPLACE INTO hfta_test_metrics (trial_id, name, value, value_type) VALUES (?1, ?2, ?3, ?4)")
        .bind(trial_id, name, number.value, number.type)
        .run();
  }
  write_end_digest(connection, trial_id);
}

/// Writes the digests of rounds; the rows of the rounds and of their slots must be written before.
void write_round_digests(Connection& connection, std::int64_t study_id, const Changes& changes) {
  std::set<std::pair<int, int>> rounds;  // pairs of round and array
  for (const RoundRecord& r : changes.rounds) rounds.emplace(r.round, r.array);
  for (const OccupancyRecord& o : changes.occupancy) rounds.emplace(o.round, o.array);
  for (const auto& [round, array] : rounds) {
    Digest digest;
    {
      Query query = connection.query(
          "SELECT round, array, width, occupied, seconds FROM hfta_rounds WHERE study_id = ?1 AND round = ?2 AND array "
          "= ?3");
      if (!query.bind(study_id, round, array).next()) continue;
      digest += digest_of_round(study_id, query);
      Query slots = connection.query(
          "SELECT round, array, slot, trial_id, epoch FROM hfta_occupancy WHERE study_id = ?1 AND round = ?2 AND array "
          "= ?3");
      slots.bind(study_id, round, array);
      while (slots.next()) digest += digest_of_slot(study_id, slots);
    }
    connection.query("UPDATE hfta_rounds SET digest = ?4 WHERE study_id = ?1 AND round = ?2 AND array = ?3")
        .bind(study_id, round, array, digest.stored())
        .run();
  }
}

void write_arrays(Connection& connection, std::int64_t study_id, const Changes& changes) {
  for (const ArrayRecord& a : changes.arrays) {
    connection
        .query(
            "INSERT OR REPLACE INTO hfta_arrays (study_id, array, device, partition, width, chunk, threads,"
            " choices_json, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
        .bind(study_id, a.array, a.device, a.partition, a.width, a.chunk, a.threads, a.choices_json,
              Digest::of(Part::kArray, study_id, a.array, a.device, a.partition, a.width, a.chunk, a.threads,
                         a.choices_json)
                  .stored())
        .run();
  }
  for (const RoundRecord& r : changes.rounds) {
    connection
        .query(
            "INSERT OR REPLACE INTO hfta_rounds (study_id, round, array, width, occupied, seconds)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(study_id, r.round, r.array, r.width, r.occupied, r.seconds)
        .run();
  }
}

void write_progress(Connection& connection, std::int64_t study_id, const Progress& progress) {
  connection.query("INSERT OR REPLACE INTO study_system_attributes (study_id, \"key\", value_json) VALUES (?1, ?2, ?3)")
      .bind(study_id, kProgressKey, progress_to_json(progress))
      .run();
}

void write_study_digest(Connection& connection, std::int64_t study_id) {
  Digest digest;
  {
    Query query = connection.query(
        "SELECT s.study_name, h.metric, h.config, h.config_json, h.space_json, h.run_caps_json FROM studies s"
        " JOIN hfta_studies h ON h.study_id = s.study_id WHERE s.study_id = ?1");
    if (!query.bind(study_id).next()) return;
    digest = Digest::of(Part::kStudy, query.view(0), joined_directions(connection, study_id), query.view(1),
                        query.view(2), query.view(3), query.view(4), query.view(5));
  }
  connection.query("UPDATE hfta_studies SET digest = ?2 WHERE study_id = ?1").bind(study_id, digest.stored()).run();
}

/// The number of the next trial or draw (`what`) behind that of the last one, which the file gives.
int after(const Connection& connection, const char* what, int last) {
  if (const std::optional<int> next = checked_next(last)) return *next;
  throw Error(ErrorKind::kStorage,
              fmt::format("{}: damaged: found {} {} as the last one, wanted a number that another one can follow; keep "
                          "the file and go back to a copy of it",
                          printable(connection.path().string()), what, last));
}

}  // namespace

void set_attribute(Connection& connection, std::int64_t trial_id, const char* key, const std::string& value_json) {
  connection.query("INSERT OR REPLACE INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?1, ?2, ?3)")
      .bind(trial_id, key, value_json)
      .run();
}

void write_end_digest(Connection& connection, std::int64_t trial_id) {
  Digest digest;
  {
    Query query = connection.query(
        "SELECT t.state, coalesce(t.datetime_complete, ''), h.reason FROM trials t JOIN hfta_trials h"
        " ON h.trial_id = t.trial_id WHERE t.trial_id = ?1");
    if (!query.bind(trial_id).next()) return;
    digest += Digest::of(Part::kState, trial_id, query.view(0), query.view(1), query.view(2));
    Query values = connection.query("SELECT objective, value, value_type FROM trial_values WHERE trial_id = ?1");
    values.bind(trial_id);
    while (values.next()) {
      digest += digest_of_value(trial_id, values.integer(0), values.number(1), values.view(2));
    }
    Query tests = connection.query("SELECT name, value, value_type FROM hfta_test_metrics WHERE trial_id = ?1");
    tests.bind(trial_id);
    while (tests.next()) digest += Digest::of(Part::kTest, trial_id, tests.view(0), tests.number(1), tests.view(2));
    Query round =
        connection.query("SELECT value_json FROM trial_system_attributes WHERE trial_id = ?1 AND \"key\" = ?2");
    if (round.bind(trial_id, kEndRoundKey).next()) digest += Digest::of(Part::kEndRound, trial_id, round.view(0));
  }
  connection.query("UPDATE hfta_trials SET end_digest = ?2 WHERE trial_id = ?1").bind(trial_id, digest.stored()).run();
}

SqliteStore::Impl::KnownStudy& SqliteStore::Impl::known(const std::string& name) {
  const std::int64_t id = study_id(name);
  KnownStudy& study = known_studies[name];
  if (study.id == id) return study;
  study = {};
  study.id = id;
  Query query = connection.query(
      "SELECT space_json, (SELECT count(*) FROM study_directions WHERE study_id = ?1) FROM hfta_studies"
      " WHERE study_id = ?1");
  query.bind(id);
  if (!query.next()) return study;
  reading(name, [&] { study.distributions = distributions_of(space_from_json(query.view(0))); });
  study.objectives = static_cast<std::size_t>(query.integer(1));
  return study;
}

std::int64_t SqliteStore::Impl::trial_id(KnownStudy& study, int number) {
  const auto index = static_cast<std::size_t>(number);  // a negative number becomes an index beyond any
  if (index >= study.trial_ids.size()) {
    Query query =
        connection.query("SELECT trial_id, number FROM trials WHERE study_id = ?1 AND trial_id > ?2 ORDER BY trial_id");
    query.bind(study.id, study.trial_ids.empty() ? std::int64_t{-1} : study.trial_ids.back());
    while (query.next()) {
      const std::int64_t next = std::ssize(study.trial_ids);
      if (!query.is_null(1) && query.integer(1) > next) {
        throw Error(ErrorKind::kStorage, fmt::format("{}: trial {}: it is not there; {}",
                                                     printable(connection.path().string()), next, kDamaged));
      }
      study.trial_ids.push_back(query.integer(0));
    }
  }
  if (index >= study.trial_ids.size()) throw no_trial(number, study.trial_ids.size());
  return study.trial_ids[index];
}

void SqliteStore::create(const StudyRecord& study) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study.name);
  if (study.name.empty()) throw name_is_empty(impl_->name());
  if (impl_->find_study(study.name)) throw name_is_taken(impl_->name(), study.name);
  check_words(study);
  impl_->known_studies.erase(study.name);  // one of that name may have been deleted by another program
  connection.query("INSERT INTO studies (study_name) VALUES (?1)").bind(study.name).run();
  const std::int64_t id = connection.last_id();
  std::vector<std::string> metrics;
  for (const trials::Objective& objective : study.objectives) {
    connection.query("INSERT INTO study_directions (direction, study_id, objective) VALUES (?1, ?2, ?3)")
        .bind(direction_of(objective.goal), id, static_cast<std::int64_t>(metrics.size()))
        .run();
    metrics.push_back(objective.metric);
  }
  connection
      .query(
          "INSERT INTO study_system_attributes (study_id, \"key\", value_json) VALUES (?1, 'study:metric_names', ?2)")
      .bind(id, dump(metrics))
      .run();
  connection
      .query(
          "INSERT INTO hfta_studies (study_id, metric, config, config_json, space_json, run_caps_json,"
          " library_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(id, metrics_column(metrics), study.config, study.config_json, space_to_json(study.space),
            ints_to_json(study.run_caps), HFTA_VERSION)
      .run();
  write_study_digest(connection, id);
  transaction.commit();
}

void SqliteStore::update(const StudyRecord& study) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study.name);
  connection
      .query(
          "UPDATE hfta_studies SET config = ?2, config_json = ?3, run_caps_json = ?4, library_version = ?5"
          " WHERE study_id = ?1")
      .bind(impl_->study_id(study.name), study.config, study.config_json, ints_to_json(study.run_caps), HFTA_VERSION)
      .run();
  if (connection.changes() != 1) {
    impl_->fail(fmt::format("study '{}' was made by Optuna, wanted one that hfta-tune made", printable(study.name)));
  }
  write_study_digest(connection, impl_->study_id(study.name));
  transaction.commit();
}

void SqliteStore::Impl::add_draw(KnownStudy& study, const NewDraw& row, const Params& params) {
  int draw = 0;
  {
    Query last = connection.query("SELECT max(draw) AS draw FROM hfta_trials WHERE study_id = ?1");
    if (last.bind(study.id).next() && !last.is_null(0)) draw = after(connection, "draw", last.int32(0));
  }
  ExactParams exact;
  Digest digest = add_params(connection, study.distributions, row.trial_id, params, exact);
  digest += Digest::of(Part::kStarted, row.trial_id, row.started);
  digest += Digest::of(Part::kTrial, row.trial_id, row.number, draw, exact.text().value_or(""));
  if (row.enqueued) digest += Digest::of(Part::kEnqueued, row.trial_id);
  if (row.seen_rounds) {
    const std::string text = std::to_string(*row.seen_rounds);
    digest += Digest::of(Part::kSeen, row.trial_id, text);
    set_attribute(connection, row.trial_id, kSeenKey, text);
  }
  connection.query("INSERT INTO hfta_trials (trial_id, study_id, draw, exact_json, digest) VALUES (?1, ?2, ?3, ?4, ?5)")
      .bind(row.trial_id, study.id, draw, exact.text(), digest.stored())
      .run();
}

std::vector<int> SqliteStore::add_trials(const std::string& study, const std::vector<NewTrial>& trials,
                                         trials::UtcTime when) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study);
  Impl::KnownStudy& known = impl_->known(study);
  std::optional<int> last_number;
  {
    // Optuna's rule for numbers, under the write lock: how many trials of the study have lower ids. The last one tells,
    // so that a study's thousandth batch costs what its first did.
    Query last = connection.query(
        "SELECT coalesce(number, (SELECT count(*) FROM trials WHERE study_id = ?1) - 1) AS number FROM trials"
        " WHERE study_id = ?1 ORDER BY trial_id DESC LIMIT 1");
    if (last.bind(known.id).next()) last_number = last.int32(0);
  }
  std::vector<int> numbers;
  for (const NewTrial& trial : trials) {
    const int number = last_number ? after(connection, "trial", *last_number) : 0;
    connection.query("INSERT INTO trials (number, study_id, state, datetime_start) VALUES (?1, ?2, 'RUNNING', ?3)")
        .bind(number, known.id, utc_text(when))
        .run();
    impl_->add_draw(known, {connection.last_id(), number, utc_text(when), false, trial.seen_rounds}, trial.params);
    numbers.push_back(number);
    last_number = number;
  }
  transaction.commit();
  return numbers;
}

void SqliteStore::commit(const std::string& study, const Changes& changes) {
  if (changes.empty()) return;
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study);
  Impl::KnownStudy& known = impl_->known(study);
  const auto id_of = [&](int number) { return impl_->trial_id(known, number); };
  DigestChanges digests;
  for (const auto& [number, when] : changes.started) {
    write_start(connection, id_of(number), utc_text(when), digests[id_of(number)]);
  }
  for (const Changes::Epoch& epoch : changes.epochs) {
    write_epoch(connection, id_of(epoch.trial), epoch, digests[id_of(epoch.trial)]);
  }
  for (const CopyRecord& change : changes.copies) {
    const std::int64_t trial_id = id_of(change.trial);
    (void)id_of(change.copy.source);
    write_copy(connection, known.distributions, trial_id, change.copy, digests[trial_id]);
  }
  write_digests(connection, digests);
  for (const StateChange& change : changes.states) {
    write_state(connection, id_of(change.trial), change, known.objectives);
  }
  write_arrays(connection, known.id, changes);
  for (const OccupancyRecord& o : changes.occupancy) {
    connection
        .query(
            "INSERT OR REPLACE INTO hfta_occupancy (study_id, round, array, slot, trial_id, epoch)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(known.id, o.round, o.array, o.slot, id_of(o.trial), o.epoch)
        .run();
  }
  write_round_digests(connection, known.id, changes);
  if (changes.progress) write_progress(connection, known.id, *changes.progress);
  for (const auto& [number, metrics] : changes.test_metrics) write_tests(connection, id_of(number), metrics);
  if (impl_->faults != nullptr) impl_->faults->reach("in-transaction");
  transaction.commit();
}

}  // namespace hfta::storage
