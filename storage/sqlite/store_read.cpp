#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "base/json_int.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Trial;

int small_json(std::string_view text, const char* what) {
  const nlohmann::json number = parse(text, what);
  try {
    return int_from(number);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: {}", what, error.what()));
  }
}

/// Reads a copy from an attribute's key and value. `drawn`: the parameters that the trial began with, in their order.
trials::Copy copy_from(std::string_view key, std::string_view text, const trials::Params& drawn) {
  const nlohmann::json json = parse(text, std::string(key));
  trials::Copy copy;
  try {
    copy.epoch = small_json(key.substr(std::string_view(kCopyKey).size()), kCopyKey);
    copy.source = int_from(json.at("source"));
    const nlohmann::json& params = json.at("params");
    for (const auto& [name, value] : drawn) {
      if (params.contains(name)) copy.params.emplace_back(name, param_from_json(params.at(name)));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: {}", printable(key), error.what()));
  }
  return copy;
}

/// The trials of a study while they are put together. Every query goes through them in order of trial_id, so that a
/// cursor finds the trial of a row.
class Builder {
 public:
  Builder(Connection& connection, std::int64_t study) : connection_(connection), study_(study) {}

  void read_trials();
  void read_params();
  void read_values();
  /// Reads what Optuna's programs say of constraints.
  void read_constraints();
  /// Reads our metrics of the trials that we trained.
  void read_ours(bool has_digests);
  /// Reads intermediate values, as metric `metric`, of the trials that Optuna's programs trained.
  void read_optunas_epochs(const std::string& metric);
  /// Compares the digests once all is read; treats damaged trials as `damage` says.
  void check(Store::Damage damage);
  [[nodiscard]] std::vector<Trial> take() { return std::move(trials_); }

 private:
  /// The trial of a row's trial_id (column 0); ids ascend within a query.
  Trial* seek(const Query& query) {
    const std::int64_t id = query.integer(0);
    while (cursor_ < ids_.size() && ids_[cursor_] < id) ++cursor_;
    return cursor_ < ids_.size() && ids_[cursor_] == id ? &trials_[cursor_] : nullptr;
  }
  Query open(std::string_view sql) {
    cursor_ = 0;
    return connection_.query(sql);
  }
  const OptunaDistribution& distribution(std::string_view json);
  void read_attributes();
  void read_reasons(bool has_digests);
  void read_epochs();
  void read_tests();

  /// The digests of a trial, computed from its rows and as stored: `rows` is of what it was given and trained, `end` of
  /// its end where that was ours.
  struct Digests {
    Digest rows, end;
    std::optional<Digest> stored, stored_end;
    bool ours = false;
  };
  Digests& digests() { return digests_[cursor_]; }
  [[nodiscard]] bool is_damaged(std::size_t i) const;

  Connection& connection_;
  std::int64_t study_;
  std::size_t cursor_ = 0;
  std::vector<std::int64_t> ids_;
  std::vector<Trial> trials_;
  std::vector<Digests> digests_;
  std::vector<std::string> completed_;  // times of completion as they are stored
  std::vector<bool> has_our_epochs_;
  std::unordered_map<std::string, OptunaDistribution> distributions_;  // one text serves thousands of trials
};

void Builder::read_trials() {
  Query query = open(
      "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE study_id = ?1"
      " ORDER BY trial_id");
  query.bind(study_);
  while (query.next()) {
    Trial trial;
    trial.number = query.is_null(1) ? static_cast<int>(ids_.size()) : query.int32(1);
    trial.state = trials::state_from(query.text(2));
    trial.started = utc_from(query.view(3));
    trial.completed = utc_from(query.view(4));
    ids_.push_back(query.integer(0));
    completed_.push_back(query.text(4));
    Digests digests;
    digests.rows += Digest::of(Part::kStarted, query.integer(0), query.view(3));
    digests_.push_back(digests);
    trials_.push_back(std::move(trial));
  }
  has_our_epochs_.assign(ids_.size(), false);
}

const OptunaDistribution& Builder::distribution(std::string_view json) {
  std::string key(json);
  const auto found = distributions_.find(key);
  if (found != distributions_.end()) return found->second;
  OptunaDistribution parsed = parse_distribution(key);
  return distributions_.emplace(std::move(key), std::move(parsed)).first->second;
}

void Builder::read_params() {
  Query query = open(
      "SELECT t.trial_id, p.param_name, p.param_value, p.distribution_json FROM trials t JOIN trial_params p"
      " ON p.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id, p.param_id");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    digests().rows += Digest::of(Part::kParam, query.integer(0), query.view(1), query.real(2), query.view(3));
    try {
      trial->params.emplace_back(query.text(1), decode(distribution(query.view(3)), query.real(2)));
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("trial {}: parameter {}: {}", trial->number, printable(query.view(1)), error.what()));
    }
  }
}

void Builder::read_values() {
  Query query = open(
      "SELECT t.trial_id, v.objective, v.value, v.value_type FROM trials t JOIN trial_values v"
      " ON v.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id, v.objective");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    digests().end += digest_of_value(query.integer(0), query.integer(1), query.number(2), query.view(3));
    const double value = from_columns(query.real(2), query.view(3));
    if (query.integer(1) == 0 || !trial->values.empty()) trial->values.push_back(value);  // none without the first
  }
}

void Builder::read_constraints() {
  Query query = open(std::string("SELECT t.trial_id FROM trials t WHERE t.study_id = ?1 AND ") + kViolates +
                     " ORDER BY t.trial_id");
  query.bind(study_);
  while (query.next()) {
    if (Trial* trial = seek(query)) trial->feasible = false;
  }
}

// Attributes are read in the order of trial_id too, so that no trial is searched for.
void Builder::read_attributes() {
  Query query = open(
      "SELECT t.trial_id, a.\"key\", a.value_json FROM trials t JOIN trial_system_attributes a"
      " ON a.trial_id = t.trial_id WHERE t.study_id = ?1"
      " AND (a.\"key\" IN (?2, ?3, ?4) OR substr(a.\"key\", 1, ?5) = ?6) ORDER BY t.trial_id");
  const std::string_view copy = kCopyKey;
  query.bind(study_, kEnqueuedKey, kSeenKey, kEndRoundKey, static_cast<std::int64_t>(copy.size()), copy);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    const std::int64_t id = query.integer(0);
    if (query.view(1) == kEnqueuedKey) {
      trial->enqueued = true;
      digests().rows += Digest::of(Part::kEnqueued, id);
    } else if (query.view(1) == kSeenKey) {
      trial->seen_rounds = small_json(query.view(2), kSeenKey);
      digests().rows += Digest::of(Part::kSeen, id, query.view(2));
    } else if (query.view(1) == kEndRoundKey) {
      trial->ended_round = small_json(query.view(2), kEndRoundKey);
      digests().end += Digest::of(Part::kEndRound, id, query.view(2));
    } else {
      trial->copies.push_back(copy_from(query.view(1), query.view(2), trial->params));
      digests().rows += Digest::of(Part::kCopy, id, query.view(1), query.view(2));
    }
  }
  for (Trial& trial : trials_) {
    std::sort(trial.copies.begin(), trial.copies.end(),
              [](const trials::Copy& a, const trials::Copy& b) { return a.epoch < b.epoch; });
  }
}

void Builder::read_reasons(bool has_digests) {
  Query query = open(has_digests ? "SELECT trial_id, reason, exact_json, draw, digest, end_digest FROM hfta_trials"
                                   " WHERE study_id = ?1 ORDER BY trial_id"
                                 : "SELECT trial_id, reason, exact_json, draw, NULL, NULL FROM hfta_trials"
                                   " WHERE study_id = ?1 ORDER BY trial_id");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) {
      throw Error(ErrorKind::kStorage, fmt::format("draw {}: its trial is not there; {}", query.integer(3), kDamaged));
    }
    trial->reason = query.text(1);
    Digests& d = digests();
    d.ours = true;
    d.rows += Digest::of(Part::kTrial, query.integer(0), trial->number, query.integer(3), query.view(2));
    d.end +=
        Digest::of(Part::kState, query.integer(0), trials::name_of(trial->state), completed_[cursor_], query.view(1));
    if (!query.is_null(4)) d.stored = Digest(query.integer(4));
    if (!query.is_null(5)) d.stored_end = Digest(query.integer(5));
    if (query.is_null(2)) continue;
    const nlohmann::json exact = parse(query.view(2), "exact_json");
    for (const auto& [name, value] : exact.items()) {
      for (auto& [known, held] : trial->params) {
        if (known == name) held = param_from_json(value);
      }
    }
  }
}

void Builder::read_ours(bool has_digests) {
  read_attributes();
  read_reasons(has_digests);
  read_epochs();
  read_tests();
}

void Builder::read_epochs() {
  Query query = open(
      "SELECT t.trial_id, m.epoch, m.name, m.value, m.value_type FROM trials t JOIN hfta_epoch_metrics m"
      " ON m.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id, m.epoch, m.name");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    has_our_epochs_[cursor_] = true;
    digests().rows +=
        Digest::of(Part::kEpoch, query.integer(0), query.integer(1), query.view(2), query.number(3), query.view(4));
    const int epoch = query.int32(1);
    if (trial->epochs.empty() || trial->epochs.back().epoch != epoch) trial->epochs.push_back({epoch, {}});
    auto& metrics = trial->epochs.back().metrics;
    metrics.emplace_hint(metrics.end(), query.view(2), from_columns(query.real(3), query.view(4)));
  }
}

void Builder::read_tests() {
  Query query = open(
      "SELECT t.trial_id, m.name, m.value, m.value_type FROM trials t JOIN hfta_test_metrics m"
      " ON m.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    digests().end += Digest::of(Part::kTest, query.integer(0), query.view(1), query.number(2), query.view(3));
    trial->test_metrics[query.text(1)] = from_columns(query.real(2), query.view(3));
  }
}

void Builder::read_optunas_epochs(const std::string& metric) {
  // Queries trial by trial, since mostly there is none to ask about: what we trained is known from our own rows.
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (has_our_epochs_[i]) continue;
    Query query = connection_.query(
        "SELECT step, intermediate_value, intermediate_value_type FROM trial_intermediate_values WHERE trial_id = ?1"
        " ORDER BY step");
    query.bind(ids_[i]);
    while (query.next()) {
      // Steps of other programs may count anything: tokens, say.
      const auto step =
          std::clamp<std::int64_t>(query.integer(0), std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
      trials_[i].epochs.push_back({static_cast<int>(step), {{metric, from_columns(query.real(1), query.view(2))}}});
    }
  }
}

bool Builder::is_damaged(std::size_t i) const {
  const Digests& d = digests_[i];
  if (!d.ours) return has_our_epochs_[i];  // the row of ours that goes with them is gone
  return (d.stored && *d.stored != d.rows) || (d.stored_end && *d.stored_end != d.end);
}

void Builder::check(Store::Damage damage) {
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (!is_damaged(i)) continue;
    if (damage == Store::Damage::kRefuse) {
      throw Error(ErrorKind::kStorage, fmt::format("trial {}: {}", trials_[i].number, kDamaged));
    }
    Trial marked;
    marked.number = trials_[i].number;
    marked.params = std::move(trials_[i].params);
    marked.state = trials::State::kFail;
    marked.reason = kDamaged;
    trials_[i] = std::move(marked);
  }
}

}  // namespace

std::vector<Trial> SqliteStore::trials(const std::string& study, Damage damage) {
  Connection& connection = impl_->connection;
  const auto record = find(study);
  Transaction snapshot(connection, Transaction::Kind::kRead);
  const std::int64_t id = impl_->study_id(study);
  Builder builder(connection, id);
  impl_->reading(study, [&] {
    builder.read_trials();
    builder.read_params();
    builder.read_values();
    builder.read_constraints();
    if (impl_->has_hfta_tables()) builder.read_ours(impl_->has_digests());
    builder.read_optunas_epochs(record ? record->objectives.front().metric : "value");
    builder.check(damage);
  });
  return builder.take();
}

std::vector<int> SqliteStore::draws(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<int> numbers;
  if (!impl_->has_hfta_tables()) return numbers;
  Query query = impl_->connection.query(
      "SELECT t.number FROM hfta_trials h JOIN trials t ON t.trial_id = h.trial_id WHERE h.study_id = ?1"
      " ORDER BY h.draw");
  query.bind(id);
  while (query.next()) numbers.push_back(query.int32(0));
  return numbers;
}

std::vector<ArrayRecord> SqliteStore::arrays(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<ArrayRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  Query query = impl_->connection.query(
      impl_->has_digests() ? "SELECT array, device, partition, width, chunk, threads, choices_json, digest"
                             " FROM hfta_arrays WHERE study_id = ?1 ORDER BY array"
                           : "SELECT array, device, partition, width, chunk, threads, choices_json, NULL"
                             " FROM hfta_arrays WHERE study_id = ?1 ORDER BY array");
  query.bind(id);
  while (query.next()) {
    const Digest found = Digest::of(Part::kArray, id, query.integer(0), query.view(1), query.view(2), query.integer(3),
                                    query.integer(4), query.integer(5), query.view(6));
    if (!query.is_null(7) && Digest(query.integer(7)) != found) {
      impl_->fail(fmt::format("study '{}': array {}: {}", printable(study), query.integer(0), kDamaged));
    }
    records.push_back(
        {query.int32(0), query.text(1), query.text(2), query.int32(3), query.int32(4), query.int32(5), query.text(6)});
  }
  return records;
}

std::vector<RoundRecord> SqliteStore::rounds(const std::string& study) {
  // A round that is committed between the two queries would have no slots, and look damaged.
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  const std::int64_t id = impl_->study_id(study);
  std::vector<RoundRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  std::map<std::pair<std::int64_t, std::int64_t>, Digest> slots;  // keyed by round and array
  if (impl_->has_digests()) {
    Query query =
        impl_->connection.query("SELECT round, array, slot, trial_id, epoch FROM hfta_occupancy WHERE study_id = ?1");
    query.bind(id);
    while (query.next()) slots[{query.integer(0), query.integer(1)}] += digest_of_slot(id, query);
  }
  Query query = impl_->connection.query(
      impl_->has_digests()
          ? "SELECT round, array, width, occupied, seconds, digest FROM hfta_rounds WHERE study_id = ?1"
            " ORDER BY round, array"
          : "SELECT round, array, width, occupied, seconds, NULL FROM hfta_rounds WHERE study_id = ?1"
            " ORDER BY round, array");
  query.bind(id);
  while (query.next()) {
    Digest found = digest_of_round(id, query);
    found += slots[{query.integer(0), query.integer(1)}];
    if (!query.is_null(5) && Digest(query.integer(5)) != found) {
      impl_->fail(fmt::format("study '{}': round {} of array {}: {}", printable(study), query.integer(0),
                              query.integer(1), kDamaged));
    }
    records.push_back({query.int32(0), query.int32(1), query.int32(2), query.int32(3), query.real(4)});
  }
  return records;
}

std::vector<OccupancyRecord> SqliteStore::occupancy(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<OccupancyRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  Query query = impl_->connection.query(
      "SELECT o.array, o.round, o.slot, t.number, o.epoch FROM hfta_occupancy o JOIN trials t"
      " ON t.trial_id = o.trial_id WHERE o.study_id = ?1 ORDER BY o.round, o.array, o.slot");
  query.bind(id);
  while (query.next()) {
    records.push_back({query.int32(0), query.int32(1), query.int32(2), query.int32(3), query.int32(4)});
  }
  return records;
}

}  // namespace hfta::storage
