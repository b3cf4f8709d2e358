#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/objectives.hpp"
#include "storage/sqlite/rows.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Params;

// The number of the next trial or draw (`what`) behind that of the last one, which the file gives.
int after(const Connection& connection, const char* what, int last) {
  if (const std::optional<int> next = checked_next(last)) return *next;
  throw Error(ErrorKind::kStorage,
              fmt::format("{}: damaged: found {} {} as the last one, wanted a number that another one can follow; keep "
                          "the file and go back to a copy of it",
                          printable(connection.path().string()), what, last));
}

}  // namespace

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
  for (const OccupancyRecord& slot : changes.occupancy) write_slot(connection, known.id, slot, id_of(slot.trial));
  write_round_digests(connection, known.id, changes);
  if (changes.progress) write_progress(connection, known.id, *changes.progress);
  for (const auto& [number, metrics] : changes.test_metrics) write_tests(connection, id_of(number), metrics);
  if (impl_->faults != nullptr) impl_->faults->reach("in-transaction");
  transaction.commit();
}

}  // namespace hfta::storage
