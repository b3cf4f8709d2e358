#pragma once
/// The rows that change while a study runs, written with their digests. Internal to the sqlite store: calls belong into
/// a transaction, and throw Error{kStorage}.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "storage/json.hpp"
#include "storage/records.hpp"
#include "storage/rules.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/digest.hpp"

namespace hfta::storage {

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
void write_digests(Connection& connection, const DigestChanges& changes);

// ---- Trials: `digest` changes by what is written ----

/// Returns the digest of what it wrote.
Digest add_params(Connection& connection, const Distributions& distributions, std::int64_t trial_id,
                  const trials::Params& params, ExactParams& exact);
void write_start(Connection& connection, std::int64_t trial_id, const std::string& when, Digest& digest);
void write_epoch(Connection& connection, std::int64_t trial_id, const Changes::Epoch& epoch, Digest& digest);
void write_copy(Connection& connection, const Distributions& distributions, std::int64_t trial_id,
                const trials::Copy& copy, Digest& digest);
/// Of ends also their values and digest.
void write_state(Connection& connection, std::int64_t trial_id, const StateChange& change, std::size_t objectives);
void write_tests(Connection& connection, std::int64_t trial_id, const std::map<std::string, double>& metrics);
/// Writes the digest of a trial's end as its rows stand. For ends that are ours: others may end a trial that we began.
void write_end_digest(Connection& connection, std::int64_t trial_id);
/// Writes one of Optuna's trial_system_attributes. `value_json`: the JSON text that is stored.
void set_attribute(Connection& connection, std::int64_t trial_id, const char* key, const std::string& value_json);

// ---- Studies ----

/// The rows of arrays and of rounds.
void write_arrays(Connection& connection, std::int64_t study_id, const Changes& changes);
void write_slot(Connection& connection, std::int64_t study_id, const OccupancyRecord& slot, std::int64_t trial_id);
/// Writes the digests of rounds; the rows of the rounds and of their slots must be written before.
void write_round_digests(Connection& connection, std::int64_t study_id, const Changes& changes);
void write_progress(Connection& connection, std::int64_t study_id, const Progress& progress);
void write_study_digest(Connection& connection, std::int64_t study_id);

}  // namespace hfta::storage
