// SqliteStore: checks of the file and of its rows.

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/sqlite/store_impl.hpp"

namespace hfta::storage {
namespace {

constexpr int kMostLines = 20, kMostRows = 5;

/// A contradiction that rows must never have. A query gives a line per offence; ?1 is the study_id.
struct Rule {
  bool of_ours;  ///< The query needs the hfta_* tables.
  const char* offences;
};

constexpr Rule kRules[] = {
    {false,
     "SELECT printf('trial %d: found %d trials of that number, wanted one', number, count(*)) FROM trials"
     " WHERE study_id = ?1 GROUP BY number HAVING count(*) > 1"},
    {false,
     "SELECT printf('trial %d: found a time at which it ended, wanted none while it is %s', number, state) FROM trials"
     " WHERE study_id = ?1 AND state IN ('RUNNING', 'WAITING') AND datetime_complete IS NOT NULL"},
    {false,
     "SELECT printf('trial %d: found no value, wanted one for a trial that is COMPLETE', number) FROM trials t"
     " WHERE study_id = ?1 AND state = 'COMPLETE' AND NOT EXISTS"
     " (SELECT 1 FROM trial_values v WHERE v.trial_id = t.trial_id)"},
    {false,
     "SELECT printf('trial %d: found %d values, wanted %d, one for each objective', number, count(*), d.objectives)"
     " FROM trials t JOIN trial_values v ON v.trial_id = t.trial_id JOIN (SELECT count(*) AS objectives"
     " FROM study_directions WHERE study_id = ?1) d WHERE t.study_id = ?1 GROUP BY t.trial_id"
     " HAVING count(*) <> d.objectives"},
    {true,
     "SELECT printf('trial %d: found a value, wanted none for a trial that is %s', number, state) FROM trials t"
     " JOIN hfta_trials h ON h.trial_id = t.trial_id WHERE t.study_id = ?1 AND state IN ('FAIL', 'RUNNING', 'WAITING')"
     " AND EXISTS (SELECT 1 FROM trial_values v WHERE v.trial_id = t.trial_id)"},
    {true,
     "SELECT printf('trial %d: found %d epochs of which the last is epoch %d, wanted 1, 2, 3, ... without a gap',"
     " t.number, count(DISTINCT m.epoch), max(m.epoch)) FROM trials t JOIN hfta_epoch_metrics m"
     " ON m.trial_id = t.trial_id WHERE t.study_id = ?1 GROUP BY t.trial_id"
     " HAVING count(DISTINCT m.epoch) <> max(m.epoch) OR min(m.epoch) <> 1"},
    {true,
     "SELECT printf('found %d draws of which the last is draw %d, wanted 0, 1, 2, ... without a gap', count(*),"
     " max(draw)) FROM hfta_trials WHERE study_id = ?1 HAVING count(DISTINCT draw) <> max(draw) + 1 OR min(draw) <> 0"},
    {true,
     "SELECT printf('trial %d: epoch %d: found %s in trial_intermediate_values, which Optuna reads, wanted %s', "
     "t.number,"
     " m.epoch, CASE WHEN i.trial_id IS NULL THEN 'nothing'"
     " ELSE coalesce(i.intermediate_value, i.intermediate_value_type) END, coalesce(m.value, m.value_type))"
     " FROM hfta_studies s JOIN hfta_trials h ON h.study_id = s.study_id JOIN trials t ON t.trial_id = h.trial_id"
     " JOIN hfta_epoch_metrics m ON m.trial_id = t.trial_id AND m.name = s.metric"
     " LEFT JOIN trial_intermediate_values i ON i.trial_id = t.trial_id AND i.step = m.epoch"
     " WHERE s.study_id = ?1 AND (i.trial_id IS NULL OR i.intermediate_value IS NOT m.value"
     " OR i.intermediate_value_type <> m.value_type)"},
    {true,
     "SELECT printf('round %d: found trial %d in %d slots, wanted one', o.round, t.number, count(*))"
     " FROM hfta_occupancy o JOIN trials t ON t.trial_id = o.trial_id WHERE o.study_id = ?1"
     " GROUP BY o.round, o.trial_id HAVING count(*) > 1"},
    {true,
     "SELECT printf('round %d: found trials in %d slots of array %d and no row of the round in hfta_rounds', o.round,"
     " count(*), o.array) FROM hfta_occupancy o LEFT JOIN hfta_rounds r ON r.study_id = o.study_id"
     " AND r.round = o.round AND r.array = o.array WHERE o.study_id = ?1 AND r.study_id IS NULL"
     " GROUP BY o.round, o.array"},
};

// Whether a line of SQLite's integrity_check is about an index alone.
bool is_of_index(std::string_view line) {
  const auto has = [&](const char* words) { return line.find(words) != line.npos; };
  return has("missing from index") || has("wrong # of entries in index") || has("values differ from index") ||
         has("non-unique entry in index");
}

std::vector<SqliteStore::StructuralFault> faults_of(Connection& connection) {
  std::vector<SqliteStore::StructuralFault> found;
  Query pages = connection.query("PRAGMA integrity_check(20)");
  while (pages.next() && found.size() < kMostLines) {
    if (pages.view(0) != "ok") found.push_back({pages.text(0), is_of_index(pages.view(0))});
  }
  return found;
}

}  // namespace

SqliteStore::Pending SqliteStore::pending() const {
  const PrivateCopy* copy = impl_->connection.copy();
  if (copy == nullptr) return Pending::kNothing;
  return copy->reason() == PrivateCopy::Reason::kHotJournal ? Pending::kHalfWritten : Pending::kLog;
}

int SqliteStore::schema() {
  if (!impl_->has_hfta_tables()) return 0;
  Query query = impl_->connection.query("SELECT schema_version FROM hfta_meta WHERE id = 1");
  return query.next() ? query.int32(0) : 0;
}

std::optional<std::filesystem::path> SqliteStore::home() { return impl_->home(); }

std::vector<SqliteStore::StructuralFault> SqliteStore::structural_faults() {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  std::vector<StructuralFault> found = faults_of(impl_->connection);
  if (!found.empty()) return found;  // references are looked up by indexes
  Query references = impl_->connection.query("PRAGMA foreign_key_check");
  while (references.next() && found.size() < kMostLines) {
    found.push_back({fmt::format("row {} of {} belongs to a row of {} that is not there", references.integer(1),
                                 references.view(0), references.view(2)),
                     false});
  }
  return found;
}

std::vector<std::string> SqliteStore::row_faults(const std::string& study) {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  const std::int64_t id = impl_->study_id(study);
  std::vector<std::string> found;
  for (const Rule& rule : kRules) {
    if (rule.of_ours && !impl_->has_hfta_tables()) continue;
    Query query = impl_->connection.query(rule.offences);
    query.bind(id);
    int rows = 0;
    while (query.next() && rows++ < kMostRows) found.push_back(excerpt(query.view(0), 400));
    if (rows > kMostRows) found.back() += "; and others";
  }
  return found;
}

void SqliteStore::rebuild_indexes() {
  Transaction transaction(impl_->connection, Transaction::Kind::kWrite);
  impl_->connection.execute("REINDEX");
  if (const std::vector<StructuralFault> left = faults_of(impl_->connection); !left.empty()) {
    impl_->fail("its indexes cannot be made anew: " + excerpt(left.front().words, 400));
  }
  transaction.commit();
}

}  // namespace hfta::storage
