#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/doctor/checks.hpp"

namespace hfta::engine::doctor {
namespace {

using storage::SqliteStore;

void check_pending(SqliteStore& store, Findings& findings) {
  if (store.pending() == SqliteStore::Pending::kHalfWritten) {
    std::filesystem::path journal = store.path();
    journal += "-journal";
    findings.push_back(
        {Severity::kNote, shown(store.path(), journal),
         "a program was killed while it wrote: its transaction is half-written, everything before it is whole",
         std::string("the next run takes it back, and so does ") + kRepair, [path = store.path()] {
           (void)SqliteStore::open(path, SqliteStore::Mode::kReadOnly)
               .studies();  // the first read of the file takes it back
           return "took back the half-written transaction";
         }});
  } else if (store.pending() == SqliteStore::Pending::kLog) {
    findings.push_back({Severity::kNote,
                        shown(store.path(), store.path()),
                        "another program set the file to a write-ahead log (WAL mode), which is durable too",
                        "",
                        {}});
  }
}

// Returns true if there are no faults.
bool check_structure(SqliteStore& store, Findings& findings) {
  const std::vector<SqliteStore::StructuralFault> faults = store.structural_faults();
  const bool in_index = std::all_of(faults.begin(), faults.end(), [](const auto& fault) { return fault.in_index; });
  const std::filesystem::path path = store.path();
  for (const SqliteStore::StructuralFault& fault : faults) {
    Finding finding{Severity::kDamage, shown(path, path), "SQLite finds: " + excerpt(fault.words, 300), "", {}};
    if (in_index) {
      finding.found += "; the rows are whole, an index that leads to them is not";
      finding.advice = std::string(kRepair) + " makes the indexes anew";
      if (&fault == &faults.front()) {  // one fix for all faults
        finding.repair = [path] {
          SqliteStore::open(path, SqliteStore::Mode::kReadWrite).rebuild_indexes();
          return "made the indexes anew";
        };
      }
    } else {
      finding.advice = "keep the file and go back to a backup of it, or salvage its rows with sqlite3 FILE '.recover'";
    }
    findings.push_back(std::move(finding));
  }
  return faults.empty();
}

}  // namespace

void check_file(const ExaminedStore& examined, Findings& findings) {
  SqliteStore& store = examined.store;
  const std::string where = shown(store.path(), store.path());
  check_pending(store, findings);
  const int schema = store.schema();
  if (check_structure(store, findings)) {
    findings.push_back({Severity::kOk, where, "whole: pages, indexes and references are as they should be", "", {}});
  }
  if (schema == 0) {
    findings.push_back(
        {Severity::kNote, where, "it has Optuna's tables alone; a run adds hfta-tune's beside them", "", {}});
  } else if (schema < storage::kNewestSchema) {
    findings.push_back(
        {Severity::kNote,
         where,
         fmt::format("its tables are of schema {}, the newest is {}: nothing is lost", schema, storage::kNewestSchema),
         fmt::format("the next run copies it to {}.schema-{} and lifts it", where, schema),
         {}});
  }
}

}  // namespace hfta::engine::doctor
