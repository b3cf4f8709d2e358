#include "storage/sqlite/holder_marks.hpp"
#include "storage/sqlite/store_impl.hpp"

namespace hfta::storage {

std::optional<Lease> SqliteStore::Impl::find_lease(const std::string& study) {
  Query query = connection.query("SELECT fence, token, holder FROM hfta_leases WHERE study_name = ?1");
  query.bind(study);
  if (!query.next()) return std::nullopt;
  return Lease{query.integer(0), query.text(1), query.text(2)};
}

void SqliteStore::Impl::check_lease(const std::string& study) {
  const auto mine = held.find(study);
  if (mine == held.end()) return;
  const std::optional<Lease> now = find_lease(study);
  if (now == mine->second) return;
  throw lease_is_lost(name(), study, now);
}

std::optional<Lease> SqliteStore::lease(const std::string& study) {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  // A file that is opened for reading keeps the tables of an earlier schema.
  const bool has_leases =
      impl_->connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hfta_leases'").next();
  if (!has_leases) return std::nullopt;
  return impl_->find_lease(study);
}

std::optional<Lease> SqliteStore::take_lease(const std::string& study, const std::optional<Lease>& seen,
                                             const std::string& token, const std::string& holder) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  if (impl_->find_lease(study) != seen) return std::nullopt;
  const Lease taken = next_lease(seen, token, holder);
  connection.query("INSERT OR REPLACE INTO hfta_leases (study_name, fence, token, holder) VALUES (?1, ?2, ?3, ?4)")
      .bind(study, taken.fence, taken.token, taken.holder)
      .run();
  connection.query("INSERT OR REPLACE INTO hfta_home (id, path) VALUES (1, ?1)").bind(connection.path().string()).run();
  transaction.commit();
  return taken;
}

void SqliteStore::hold(const std::string& study, const Lease& lease) { impl_->held[study] = lease; }

void SqliteStore::check_held(const std::string& study) { impl_->check_lease(study); }

std::unique_ptr<HolderMarks> SqliteStore::marks(const std::string& study) { return make_holder_marks(states(study)); }

std::optional<LifeSign> SqliteStore::life_sign(const std::string& study, const Lease& lease, const Clock& clock) {
  return life_sign_in(states(study).folder, lease, clock);
}

}  // namespace hfta::storage
