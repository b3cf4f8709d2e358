#include "storage/sqlite/rows.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/objectives.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

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

}  // namespace

void set_attribute(Connection& connection, std::int64_t trial_id, const char* key, const std::string& value_json) {
  connection.query("INSERT OR REPLACE INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?1, ?2, ?3)")
      .bind(trial_id, key, value_json)
      .run();
}

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

Digest add_params(Connection& connection, const Distributions& distributions, std::int64_t trial_id,
                  const trials::Params& params, ExactParams& exact) {
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

void write_slot(Connection& connection, std::int64_t study_id, const OccupancyRecord& slot, std::int64_t trial_id) {
  connection
      .query(
          "INSERT OR REPLACE INTO hfta_occupancy (study_id, round, array, slot, trial_id, epoch)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(study_id, slot.round, slot.array, slot.slot, trial_id, slot.epoch)
      .run();
}

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

}  // namespace hfta::storage
