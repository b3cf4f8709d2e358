#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/store_impl.hpp"
#include "storage/utc.hpp"

namespace hfta::storage {
namespace {

using trials::Trial;

/// The trials of a study while they are put together. Every query goes through them in order of trial_id, so that a
/// cursor finds the trial of a row.
class Builder {
 public:
  Builder(Connection& connection, std::int64_t study) : connection_(connection), study_(study) {}

  void read_trials();
  void read_params();
  void read_values();
  /// Our metrics for the trials that we trained.
  void read_ours();
  /// Intermediate values, as metric `metric`, for the trials that Optuna's programs trained.
  void read_optunas_epochs(const std::string& metric);
  [[nodiscard]] std::vector<Trial> take() { return std::move(trials_); }

 private:
  /// The trial of a row's trial_id (column 0); ids ascend within a query.
  Trial* seek(const Query& query) {
    const std::int64_t id = query.integer(0);
    while (cursor_ < ids_.size() && ids_[cursor_] < id) ++cursor_;
    return cursor_ < ids_.size() && ids_[cursor_] == id ? &trials_[cursor_] : nullptr;
  }
  Query open(const char* sql) {
    cursor_ = 0;
    return connection_.query(sql);
  }
  const OptunaDistribution& distribution(std::string_view json);
  void read_reasons();

  Connection& connection_;
  std::int64_t study_;
  std::size_t cursor_ = 0;
  std::vector<std::int64_t> ids_;
  std::vector<Trial> trials_;
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
    trial.number = query.is_null(1) ? static_cast<int>(ids_.size()) : query.small(1);
    trial.state = trials::state_from(query.text(2));
    trial.started = utc_from(query.view(3));
    trial.completed = utc_from(query.view(4));
    ids_.push_back(query.integer(0));
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
      "SELECT t.trial_id, v.value, v.value_type FROM trials t JOIN trial_values v ON v.trial_id = t.trial_id"
      " AND v.objective = 0 WHERE t.study_id = ?1 ORDER BY t.trial_id");
  query.bind(study_);
  while (query.next()) {
    if (Trial* trial = seek(query)) trial->value = from_columns(query.real(1), query.view(2));
  }
}

void Builder::read_reasons() {
  Query query = open(
      "SELECT t.trial_id, h.reason, h.exact_json, EXISTS (SELECT 1 FROM trial_system_attributes a"
      " WHERE a.trial_id = t.trial_id AND a.\"key\" = 'hfta:enqueued') FROM trials t JOIN hfta_trials h ON h.trial_id "
      "= t.trial_id"
      " WHERE t.study_id = ?1 ORDER BY t.trial_id");
  query.bind(study_);
  while (query.next()) {
    Trial* trial = seek(query);
    if (trial == nullptr) continue;
    trial->reason = query.text(1);
    trial->enqueued = query.integer(3) != 0;
    if (query.is_null(2)) continue;
    const nlohmann::json exact = parse(query.view(2), "exact_json");
    for (const auto& [name, value] : exact.items()) {
      for (auto& [known, held] : trial->params) {
        if (known == name) held = param_from_json(value);
      }
    }
  }
}

void Builder::read_ours() {
  read_reasons();
  {
    Query query = open(
        "SELECT t.trial_id, m.epoch, m.name, m.value, m.value_type FROM trials t JOIN hfta_epoch_metrics m"
        " ON m.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id, m.epoch, m.name");
    query.bind(study_);
    while (query.next()) {
      Trial* trial = seek(query);
      if (trial == nullptr) continue;
      has_our_epochs_[cursor_] = true;
      const int epoch = query.small(1);
      if (trial->epochs.empty() || trial->epochs.back().epoch != epoch) trial->epochs.push_back({epoch, {}});
      auto& metrics = trial->epochs.back().metrics;
      metrics.emplace_hint(metrics.end(), query.view(2), from_columns(query.real(3), query.view(4)));
    }
  }
  Query query = open(
      "SELECT t.trial_id, m.name, m.value, m.value_type FROM trials t JOIN hfta_test_metrics m"
      " ON m.trial_id = t.trial_id WHERE t.study_id = ?1 ORDER BY t.trial_id");
  query.bind(study_);
  while (query.next()) {
    if (Trial* trial = seek(query)) trial->test_metrics[query.text(1)] = from_columns(query.real(2), query.view(3));
  }
}

void Builder::read_optunas_epochs(const std::string& metric) {
  // Trial by trial, since mostly there is none to ask about: what we trained is known from our own rows.
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (has_our_epochs_[i]) continue;
    Query query = connection_.query(
        "SELECT step, intermediate_value, intermediate_value_type FROM trial_intermediate_values WHERE trial_id = ?1"
        " ORDER BY step");
    query.bind(ids_[i]);
    while (query.next()) {
      trials_[i].epochs.push_back({query.small(0), {{metric, from_columns(query.real(1), query.view(2))}}});
    }
  }
}

}  // namespace

std::vector<Trial> Store::trials(const std::string& study) {
  Connection& connection = impl_->connection;
  const auto record = find(study);
  Transaction snapshot(connection, Transaction::Kind::kRead);
  const std::int64_t id = impl_->study_id(study);
  Builder builder(connection, id);
  impl_->reading(study, [&] {
    builder.read_trials();
    builder.read_params();
    builder.read_values();
    if (impl_->has_hfta_tables()) builder.read_ours();
    builder.read_optunas_epochs(record ? record->metric : "value");
  });
  return builder.take();
}

std::vector<int> Store::draws(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<int> numbers;
  if (!impl_->has_hfta_tables()) return numbers;
  Query query = impl_->connection.query(
      "SELECT t.number FROM hfta_trials h JOIN trials t ON t.trial_id = h.trial_id WHERE h.study_id = ?1"
      " ORDER BY h.draw");
  query.bind(id);
  while (query.next()) numbers.push_back(query.small(0));
  return numbers;
}

std::vector<ArrayRecord> Store::arrays(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<ArrayRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  Query query = impl_->connection.query(
      "SELECT array, device, partition, width, chunk, threads, choices_json FROM hfta_arrays WHERE study_id = ?1"
      " ORDER BY array");
  query.bind(id);
  while (query.next()) {
    records.push_back(
        {query.small(0), query.text(1), query.text(2), query.small(3), query.small(4), query.small(5), query.text(6)});
  }
  return records;
}

std::vector<RoundRecord> Store::rounds(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<RoundRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  Query query = impl_->connection.query(
      "SELECT round, array, width, occupied, seconds FROM hfta_rounds WHERE study_id = ?1 ORDER BY round, array");
  query.bind(id);
  while (query.next()) {
    records.push_back({query.small(0), query.small(1), query.small(2), query.small(3), query.real(4)});
  }
  return records;
}

std::vector<OccupancyRecord> Store::occupancy(const std::string& study) {
  const std::int64_t id = impl_->study_id(study);
  std::vector<OccupancyRecord> records;
  if (!impl_->has_hfta_tables()) return records;
  Query query = impl_->connection.query(
      "SELECT o.array, o.round, o.slot, t.number, o.epoch FROM hfta_occupancy o JOIN trials t"
      " ON t.trial_id = o.trial_id WHERE o.study_id = ?1 ORDER BY o.round, o.array, o.slot");
  query.bind(id);
  while (query.next()) {
    records.push_back({query.small(0), query.small(1), query.small(2), query.small(3), query.small(4)});
  }
  return records;
}

}  // namespace hfta::storage
