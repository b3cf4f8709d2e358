// Store: trials that other programs ask for.

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/rows.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Params;

void set(Params& params, const std::string& name, trials::ParamValue value) {
  const auto known = std::find_if(params.begin(), params.end(), [&](const auto& p) { return p.first == name; });
  if (known == params.end()) {
    params.emplace_back(name, std::move(value));
  } else {
    known->second = std::move(value);
  }
}

// Adds what Optuna's enqueue_trial left: {"lr": 0.1, "layers": 3}. Other text becomes a parameter
// `fixed_params`, so that completing the trial reports it.
void set_fixed(Params& params, std::string_view text) {
  nlohmann::json fixed;
  try {
    fixed = parse(text, "fixed_params");
  } catch (const Error&) {
    fixed = nullptr;
  }
  if (!fixed.is_object()) return set(params, "fixed_params", std::string(text.substr(0, 100)));
  for (const auto& [name, value] : fixed.items()) set(params, name, param_from_json(value));
}

}  // namespace

bool SqliteStore::changed_outside() {
  Query query = impl_->connection.query("PRAGMA data_version");
  if (!query.next()) return true;
  const std::int64_t version = query.integer(0);
  return std::exchange(impl_->seen_version, version) != version;
}

std::vector<EnqueuedTrial> SqliteStore::enqueued(const std::string& study) {
  Connection& connection = impl_->connection;
  Transaction snapshot(connection, Transaction::Kind::kRead);
  std::vector<EnqueuedTrial> trials;
  if (!impl_->has_hfta_tables()) return trials;
  const std::int64_t study_id = impl_->study_id(study);
  Query waiting = connection.query(
      "SELECT t.trial_id, coalesce(t.number, (SELECT count(*) FROM trials o WHERE o.study_id = ?1"
      " AND o.trial_id < t.trial_id)) AS number,"
      " (SELECT value_json FROM trial_system_attributes a WHERE a.trial_id = t.trial_id AND a.\"key\" = 'fixed_params')"
      " FROM trials t WHERE t.study_id = ?1 AND t.state = 'WAITING'"
      " AND NOT EXISTS (SELECT 1 FROM hfta_trials h WHERE h.trial_id = t.trial_id) ORDER BY t.trial_id");
  waiting.bind(study_id);
  while (waiting.next()) {
    EnqueuedTrial& trial = trials.emplace_back();
    trial.number = waiting.int32(1);
    // A trial that Optuna tries again has parameters already.
    Query params =
        connection.query("SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?1");
    params.bind(waiting.integer(0));
    impl_->reading(study, [&] {
      while (params.next()) {
        set(trial.params, params.text(0), decode(parse_distribution(params.text(2)), params.real(1)));
      }
      if (!waiting.is_null(2)) set_fixed(trial.params, waiting.view(2));
    });
  }
  return trials;
}

bool SqliteStore::claim(const std::string& study, int number, const Params& params, trials::UtcTime when,
                        const std::string& failure) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  impl_->check_lease(study);
  Impl::KnownStudy& known = impl_->known(study);
  const std::int64_t id = impl_->trial_id(known, number);
  const std::string now = utc_text(when);
  // This compare and swap is how Optuna's workers take a trial, too.
  connection
      .query(
          "UPDATE trials SET state = ?2, datetime_start = ?3, datetime_complete = ?4"
          " WHERE trial_id = ?1 AND state = 'WAITING'")
      .bind(id, trials::name_of(failure.empty() ? trials::State::kRunning : trials::State::kFail), now,
            failure.empty() ? std::optional<std::string>() : now)
      .run();
  if (connection.changes() != 1) return false;
  connection.query("DELETE FROM trial_params WHERE trial_id = ?1").bind(id).run();
  impl_->add_draw(known, {id, number, now, /*enqueued=*/true}, params);
  set_attribute(connection, id, kEnqueuedKey, "true");
  if (!failure.empty()) {
    connection.query("UPDATE hfta_trials SET reason = ?2 WHERE trial_id = ?1").bind(id, failure).run();
    write_end_digest(connection, id);
  }
  transaction.commit();
  return true;
}

}  // namespace hfta::storage
