#include "storage/sqlite/private_copy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndings[] = {"", "-journal", "-wal"};

// https://www.sqlite.org/fileformat.html, bytes 18 and 19: the versions for writing and reading; 2 is WAL.
bool is_in_wal_mode(const fs::path& store) {
  const Descriptor file(::open(store.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<unsigned char, 2> versions{};
  return file.get() >= 0 && ::pread(file.get(), versions.data(), versions.size(), 18) == 2 &&
         (versions[0] == 2 || versions[1] == 2);
}

// Asks SQLite, which alone knows whether a journal is a living program's.
bool has_hot_journal(const fs::path& store) {
  sqlite3* opened = nullptr;
  int code = sqlite3_open_v2(fs::absolute(store).c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> database(opened, &sqlite3_close_v2);
  if (code != SQLITE_OK) return false;  // opening the store reports it
  sqlite3_busy_timeout(opened, 10'000);
  sqlite3_exec(opened, "PRAGMA user_version", nullptr, nullptr, nullptr);
  code = sqlite3_extended_errcode(opened);
  return code == SQLITE_READONLY_ROLLBACK;
}

// File status that tells one version of the files from another.
std::vector<struct stat> stamps(const fs::path& store) {
  std::vector<struct stat> found;
  for (const char* ending : kEndings) {
    fs::path file = store;
    struct stat status {};
    if (::stat((file += ending).c_str(), &status) != 0) status = {};
    found.push_back(status);
  }
  return found;
}

bool same(const std::vector<struct stat>& a, const std::vector<struct stat>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].st_ino != b[i].st_ino || a[i].st_size != b[i].st_size || a[i].st_mtim.tv_sec != b[i].st_mtim.tv_sec ||
        a[i].st_mtim.tv_nsec != b[i].st_mtim.tv_nsec) {
      return false;
    }
  }
  return true;
}

void copy_synced(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(from, error))) return;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  const Descriptor file(error ? -1 : ::open(to.c_str(), O_RDONLY | O_CLOEXEC));
  if (!error && sync_file(file) == 0) return;
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot be copied to {}: {}", printable(from.string()),
                                               printable(to.string()), error ? error.message() : "cannot sync"));
}

}  // namespace

void copy_as_it_lies(const fs::path& store, const fs::path& copy) {
  constexpr int kMostTries = 5;
  std::error_code error;
  const fs::path real = fs::canonical(store, error);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::vector<struct stat> before = stamps(real);
    for (const char* ending : kEndings) {
      fs::path from = real, to = copy;
      fs::remove(to += ending, error);
      copy_synced(from += ending, to);
    }
    if (!same(before, stamps(real))) continue;
    Folder(fs::absolute(copy).parent_path()).sync();
    return;
  }
  throw Error(ErrorKind::kLocked,
              fmt::format("{}: other programs change it while it is copied; wait for them to finish, "
                          "then run the same command again",
                          printable(store.string())));
}

std::unique_ptr<PrivateCopy> PrivateCopy::where_needed(const fs::path& store) {
  if (is_in_wal_mode(store)) return std::make_unique<PrivateCopy>(store, Reason::kLog);
  if (has_hot_journal(store)) return std::make_unique<PrivateCopy>(store, Reason::kHotJournal);
  return nullptr;
}

// The copy lies on the disk: a store may be larger than memory should hold.
PrivateCopy::PrivateCopy(const fs::path& store, Reason reason)
    : folder_("hfta-doctor", fs::temp_directory_path()), path_(folder_.path() / "store.db"), reason_(reason) {
  copy_as_it_lies(store, path_);
}

}  // namespace hfta::storage
