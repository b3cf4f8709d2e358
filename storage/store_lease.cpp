#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/store_impl.hpp"

namespace hfta::storage {

std::optional<Lease> Store::Impl::find_lease(const std::string& study) {
  Query query = connection.query("SELECT fence, token, holder FROM hfta_leases WHERE study_name = ?1");
  query.bind(study);
  if (!query.next()) return std::nullopt;
  return Lease{query.integer(0), query.text(1), query.text(2)};
}

void Store::Impl::check_lease(const std::string& study) {
  const auto mine = held.find(study);
  if (mine == held.end()) return;
  const std::optional<Lease> now = find_lease(study);
  if (now == mine->second) return;
  const std::string place = fmt::format("{}: study '{}'", printable(connection.path().string()), printable(study));
  if (!now) {
    throw Error(ErrorKind::kBusy, place + ": it was deleted by another program while this one ran it; this one stops");
  }
  throw Error(ErrorKind::kBusy,
              fmt::format("{}: it was taken over by {}; this one stops", place, printable(now->holder)));
}

std::optional<Lease> Store::lease(const std::string& study) {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  // A file that is opened for reading keeps the tables of an earlier schema.
  const bool has_leases =
      impl_->connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hfta_leases'").next();
  if (!has_leases) return std::nullopt;
  return impl_->find_lease(study);
}

std::optional<Lease> Store::take_lease(const std::string& study, const std::optional<Lease>& seen,
                                       const std::string& token, const std::string& holder) {
  Connection& connection = impl_->connection;
  Transaction transaction(connection, Transaction::Kind::kWrite);
  if (impl_->find_lease(study) != seen) return std::nullopt;
  const Lease taken{seen ? seen->fence + 1 : 1, token, holder};
  connection.query("INSERT OR REPLACE INTO hfta_leases (study_name, fence, token, holder) VALUES (?1, ?2, ?3, ?4)")
      .bind(study, taken.fence, taken.token, taken.holder)
      .run();
  connection.query("INSERT OR REPLACE INTO hfta_home (id, path) VALUES (1, ?1)").bind(connection.path().string()).run();
  transaction.commit();
  return taken;
}

void Store::hold(const std::string& study, const Lease& lease) { impl_->held[study] = lease; }

void Store::check_held(const std::string& study) { impl_->check_lease(study); }

}  // namespace hfta::storage
