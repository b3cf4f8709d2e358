#include "tests/storage/sqlite/fault_vfs.hpp"

#include <sqlite3.h>

#include <cstring>
#include <utility>

namespace hfta::storage::testing {
namespace {

struct Plan {
  int count = 0, reads = 0, fail_at = 0, code = SQLITE_OK;
  bool for_ever = false;
  std::function<void(int)> observer;

  /// What the next change of the disk answers before it is done.
  int step() {
    ++count;
    if (observer) observer(count);
    const bool fails = fail_at > 0 && (count == fail_at || (for_ever && count > fail_at));
    return fails ? code : SQLITE_OK;
  }
};
Plan plan;

sqlite3_vfs* real = nullptr;
sqlite3_vfs faulty;

/// SQLite gives szOsFile bytes for both: ours in front, the real file behind it.
struct File {
  sqlite3_file base;
  [[nodiscard]] sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* mine(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* inner(sqlite3_file* file) { return mine(file)->inner(); }
const sqlite3_io_methods* of(sqlite3_file* file) { return inner(file)->pMethods; }

int close(sqlite3_file* f) { return of(f)->xClose(inner(f)); }
int read(sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
  ++plan.reads;
  return of(f)->xRead(inner(f), to, n, at);
}
int write(sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
  const int code = plan.step();
  return code != SQLITE_OK ? code : of(f)->xWrite(inner(f), from, n, at);
}
int truncate(sqlite3_file* f, sqlite3_int64 size) {
  const int code = plan.step();
  return code != SQLITE_OK ? code : of(f)->xTruncate(inner(f), size);
}
int sync(sqlite3_file* f, int flags) {
  const int code = plan.step();
  return code != SQLITE_OK ? code : of(f)->xSync(inner(f), flags);
}
int size(sqlite3_file* f, sqlite3_int64* out) { return of(f)->xFileSize(inner(f), out); }
int lock(sqlite3_file* f, int level) { return of(f)->xLock(inner(f), level); }
int unlock(sqlite3_file* f, int level) { return of(f)->xUnlock(inner(f), level); }
int check_lock(sqlite3_file* f, int* out) { return of(f)->xCheckReservedLock(inner(f), out); }
int control(sqlite3_file* f, int op, void* argument) { return of(f)->xFileControl(inner(f), op, argument); }
int sector(sqlite3_file* f) { return of(f)->xSectorSize(inner(f)); }
int characteristics(sqlite3_file* f) { return of(f)->xDeviceCharacteristics(inner(f)); }

// Version 1: without shared memory and mapping, which a rollback journal does not need.
const sqlite3_io_methods kMethods = {1,       close,      read,    write,  truncate,        sync,    size,    lock,
                                     unlock,  check_lock, control, sector, characteristics, nullptr, nullptr, nullptr,
                                     nullptr, nullptr,    nullptr};

int open(sqlite3_vfs* /*vfs*/, sqlite3_filename name, sqlite3_file* file, int flags, int* flags_out) {
  const int code = real->xOpen(real, name, mine(file)->inner(), flags, flags_out);
  file->pMethods = mine(file)->inner()->pMethods != nullptr ? &kMethods : nullptr;
  return code;
}
int remove(sqlite3_vfs* /*vfs*/, const char* name, int sync_folder) {
  const int code = plan.step();
  return code != SQLITE_OK ? code : real->xDelete(real, name, sync_folder);
}

}  // namespace

FaultyDisk::FaultyDisk() {
  real = sqlite3_vfs_find(nullptr);
  faulty = *real;
  faulty.zName = "faulty";
  faulty.iVersion = 1;
  faulty.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  faulty.xOpen = open;
  faulty.xDelete = remove;
  plan = Plan{};
  sqlite3_vfs_register(&faulty, 1);
}

FaultyDisk::~FaultyDisk() {
  sqlite3_vfs_unregister(&faulty);
  sqlite3_vfs_register(real, 1);
  plan = Plan{};
}

void FaultyDisk::fail_at(int n, int code, bool for_ever) {
  plan = Plan{};
  plan.fail_at = n;
  plan.code = code;
  plan.for_ever = for_ever;
}

void FaultyDisk::observe(std::function<void(int)> observer) {
  plan = Plan{};
  plan.observer = std::move(observer);
}

int FaultyDisk::changes() const { return plan.count; }
int FaultyDisk::reads() const { return plan.reads; }

}  // namespace hfta::storage::testing
