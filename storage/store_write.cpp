#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/store_impl.hpp"
#include "storage/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Params;
using trials::State;

const char* direction_of(trials::Goal goal) { return goal == trials::Goal::kMinimize ? "MINIMIZE" : "MAXIMIZE"; }

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

void add_params(Connection& connection, const std::map<std::string, OptunaDistribution>& distributions,
                std::int64_t trial_id, const Params& params, ExactParams& exact) {
  Query insert = connection.query(
      "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?1, ?2, ?3, ?4)");
  for (const auto& [name, value] : params) {
    const auto found = distributions.find(name);
    if (found == distributions.end()) {
      throw Error(ErrorKind::kInternal, fmt::format("parameter {}: not in the study's space", printable(name)));
    }
    EncodedParam encoded;
    try {
      encoded = encode(found->second, value);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("parameter {}: {}", printable(name), error.what()));
    }
    insert.bind(trial_id, name, encoded.value, encoded.distribution_json).run();
    if (!encoded.exact) exact.add(name, value);
  }
}

void write_epoch(Connection& connection, std::int64_t trial_id, const Changes::Epoch& epoch) {
  connection.query("DELETE FROM hfta_epoch_metrics WHERE trial_id = ?1 AND epoch = ?2")
      .bind(trial_id, epoch.record.epoch)
      .run();
  Query insert = connection.query(
      "INSERT INTO hfta_epoch_metrics (trial_id, epoch, name, value, value_type) VALUES (?1, ?2, ?3, ?4, ?5)");
  for (const auto& [name, value] : epoch.record.metrics) {
    const StoredNumber number = to_columns(value);
    insert.bind(trial_id, epoch.record.epoch, name, number.value, number.type).run();
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

/// The value that Optuna's rules let a trial of that state have.
std::optional<double> value_to_store(const StateChange& change) {
  const bool has_number = change.value && !std::isnan(*change.value);
  if (change.state == State::kComplete && !has_number) {
    throw Error(ErrorKind::kInternal, fmt::format("trial {}: COMPLETE without a value", change.trial));
  }
  const bool keeps = change.state == State::kComplete || change.state == State::kPruned;
  return keeps && has_number ? change.value : std::nullopt;
}

bool is_finished(State state) { return state == State::kComplete || state == State::kPruned || state == State::kFail; }

void write_state(Connection& connection, std::int64_t trial_id, const StateChange& change) {
  std::optional<std::string> completed;
  if (is_finished(change.state)) completed = utc_text(change.when);
  connection.query("UPDATE trials SET state = ?2, datetime_complete = ?3 WHERE trial_id = ?1")
      .bind(trial_id, trials::name_of(change.state), completed)
      .run();
  if (connection.changes() != 1) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: trial {} was removed by another program",
                                                 printable(connection.path().string()), change.trial));
  }
  connection.query("UPDATE hfta_trials SET reason = ?2 WHERE trial_id = ?1").bind(trial_id, change.reason).run();
  const std::optional<double> value = value_to_store(change);
  if (!value) {
    connection.query("DELETE FROM trial_values WHERE trial_id = ?1").bind(trial_id).run();
    return;
  }
  const StoredNumber number = to_columns(*value);
  connection
      .query(
          "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?1, 0, ?2, ?3)"
          " ON CONFLICT (trial_id, objective) DO UPDATE SET value = excluded.value, value_type = excluded.value_type")
      .bind(trial_id, number.value, number.type)
      .run();
}

void write_tests(Connection& connection, std::int64_t trial_id, const std::map<std::string, double>& metrics) {
  for (const auto& [name, value] : metrics) {
    const StoredNumber number = to_columns(value);
    connection
        .query("INSERT OR REPLACE INTO hfta_test_metrics (trial_id, name, value, value_type) VALUES (?1, ?2, ?3, ?4)")
        .bind(trial_id, name, number.value, number.type)
        .run();
  }
}

void write_arrays(Connection& connection, std::int64_t study_id, const Changes& changes) {
  for (const ArrayRecord& a : changes.arrays) {
    connection
        .query(
            "INSERT OR REPLACE INTO hfta_arrays (study_id, array, device, partition, width, chunk, threads,"
            " choices_json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
        .bind(study_id, a.array, a.device, a.partition, a.width, a.chunk, a.threads, a.choices_json)
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

}  // namespace

Store::Impl::KnownStudy& Store::Impl::known(const std::string& name) {
  const std::int64_t id = study_id(name);
  KnownStudy& study = known_studies[name];
  if (study.id == id) return study;
  study = {};
  study.id = id;
  Query query = connection.query("SELECT space_json FROM hfta_studies WHERE study_id = ?1");
  query.bind(id);
  if (!query.next()) return study;
  reading(name, [&] {
    for (const trials::Parameter& parameter : space_from_json(query.view(0))) {
      study.distributions.emplace(parameter.name, to_optuna(parameter.distribution));
    }
  });
  return study;
}

std::int64_t Store::Impl::trial_id(KnownStudy& study, int number) {
  const auto index = static_cast<std::size_t>(number);
  if (number >= 0 && index >= study.trial_ids.size()) {
    Query query =
        connection.query("SELECT trial_id FROM trials WHERE study_id = ?1 AND trial_id > ?2 ORDER BY trial_id");
    query.bind(study.id, study.trial_ids.empty() ? std::int64_t{-1} : study.trial_ids.back());
    while (query.next()) study.trial_ids.push_back(query.integer(0));
  }
  if (number < 0 || index >= study.trial_ids.size()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("trial {}: not in the store, whose study has {} trials", number, study.trial_ids.size()));
  }
  return study.trial_ids[index];
}

void Store::create(const StudyRecord& study) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study.name);
  if (study.name.empty()) impl_->fail("a study's name is empty, wanted a word");
  if (impl_->find_study(study.name)) {
    impl_->fail(fmt::format("there is a study '{}' already; choose another name", printable(study.name)));
  }
  for (const trials::Parameter& parameter : study.space) (void)to_optuna(parameter.distribution);
  impl_->known_studies.erase(study.name);  // one of that name may have been deleted by another program
  connection.query("INSERT INTO studies (study_name) VALUES (?1)").bind(study.name).run();
  const std::int64_t id = connection.last_id();
  connection.query("INSERT INTO study_directions (direction, study_id, objective) VALUES (?1, ?2, 0)")
      .bind(direction_of(study.goal), id)
      .run();
  connection
      .query(
          "INSERT INTO study_system_attributes (study_id, \"key\", value_json) VALUES (?1, 'study:metric_names', ?2)")
      .bind(id, dump(nlohmann::json::array({study.metric})))
      .run();
  connection
      .query(
          "INSERT INTO hfta_studies (study_id, metric, config, config_json, space_json, run_caps_json,"
          " library_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(id, study.metric, study.config, study.config_json, space_to_json(study.space), ints_to_json(study.run_caps),
            HFTA_VERSION)
      .run();
  transaction.commit();
}

void Store::update(const StudyRecord& study) {
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
  transaction.commit();
}

void Store::Impl::add_draw(KnownStudy& study, std::int64_t trial_id, const Params& params) {
  int draw = 0;
  {
    Query last = connection.query("SELECT coalesce(max(draw) + 1, 0) FROM hfta_trials WHERE study_id = ?1");
    if (last.bind(study.id).next()) draw = last.small(0);
  }
  ExactParams exact;
  add_params(connection, study.distributions, trial_id, params, exact);
  connection.query("INSERT INTO hfta_trials (trial_id, study_id, draw, exact_json) VALUES (?1, ?2, ?3, ?4)")
      .bind(trial_id, study.id, draw, exact.text())
      .run();
}

std::vector<int> Store::add_trials(const std::string& study, const std::vector<Params>& params, trials::UtcTime when) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study);
  Impl::KnownStudy& known = impl_->known(study);
  int number = 0;
  {
    // Optuna's rule for numbers, under the write lock: how many trials of the study have lower ids. The last one tells,
    // so that a study's thousandth batch costs what its first did.
    Query last = connection.query(
        "SELECT coalesce(number + 1, (SELECT count(*) FROM trials WHERE study_id = ?1)) FROM trials"
        " WHERE study_id = ?1 ORDER BY trial_id DESC LIMIT 1");
    if (last.bind(known.id).next()) number = last.small(0);
  }
  std::vector<int> numbers;
  for (const Params& trial : params) {
    connection.query("INSERT INTO trials (number, study_id, state, datetime_start) VALUES (?1, ?2, 'RUNNING', ?3)")
        .bind(number, known.id, utc_text(when))
        .run();
    impl_->add_draw(known, connection.last_id(), trial);
    numbers.push_back(number++);
  }
  transaction.commit();
  return numbers;
}

bool Changes::empty() const {
  return started.empty() && epochs.empty() && states.empty() && arrays.empty() && occupancy.empty() && rounds.empty() &&
         test_metrics.empty();
}

void Store::commit(const std::string& study, const Changes& changes) {
  if (changes.empty()) return;
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study);
  Impl::KnownStudy& known = impl_->known(study);
  const auto id_of = [&](int number) { return impl_->trial_id(known, number); };
  for (const auto& [number, when] : changes.started) {
    connection.query("UPDATE trials SET datetime_start = ?2 WHERE trial_id = ?1")
        .bind(id_of(number), utc_text(when))
        .run();
  }
  for (const Changes::Epoch& epoch : changes.epochs) write_epoch(connection, id_of(epoch.trial), epoch);
  for (const StateChange& change : changes.states) write_state(connection, id_of(change.trial), change);
  write_arrays(connection, known.id, changes);
  for (const OccupancyRecord& o : changes.occupancy) {
    connection
        .query(
            "INSERT OR REPLACE INTO hfta_occupancy (study_id, round, array, slot, trial_id, epoch)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(known.id, o.round, o.array, o.slot, id_of(o.trial), o.epoch)
        .run();
  }
  for (const auto& [number, metrics] : changes.test_metrics) write_tests(connection, id_of(number), metrics);
  if (impl_->faults != nullptr) impl_->faults->reach("in-transaction");
  transaction.commit();
}

}  // namespace hfta::storage
