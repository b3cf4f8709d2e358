#include "base/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.hpp"

namespace hfta {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPattern = "-XXXXXX";

fs::path place_of_folders() {
  std::error_code ignored;
  const fs::path memory = "/dev/shm";
  const bool in_memory = fs::is_directory(memory, ignored) && ::access(memory.c_str(), W_OK) == 0;
  return in_memory ? memory : fs::temp_directory_path();
}

Descriptor opened(const fs::path& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// False, too, if the folder was gone before it could be opened.
bool is_still(const fs::path& folder, const Descriptor& open) {
  struct stat by_name {
  }, by_number{};
  return ::lstat(folder.c_str(), &by_name) == 0 && ::fstat(open.get(), &by_number) == 0 &&
         by_name.st_dev == by_number.st_dev && by_name.st_ino == by_number.st_ino;
}

// Removes folders of this user's processes that were killed: the kernel gave their locks back.
void sweep(const fs::path& place, const std::string& name) {
  std::error_code ignored;
  for (fs::directory_iterator entry(place, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string found = entry->path().filename().string();
    if (!found.starts_with(name + "-") || found.size() != name.size() + std::strlen(kPattern)) continue;
    const Descriptor folder = opened(entry->path());
    struct stat status {};
    if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    std::error_code failed;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), failed);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& name, const fs::path& wanted_place) {
  const fs::path place = wanted_place.empty() ? place_of_folders() : wanted_place;
  sweep(place, name);
  // Before the folder is locked, another process may take it for a dead one's: then another one is made.
  do {
    std::string pattern = (place / (name + kPattern)).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorKind::kStorage, pattern + ": cannot create a temporary folder: " + std::strerror(errno));
    }
    path_ = pattern;
    lock_ = opened(path_);
    if (lock_.get() < 0 && errno != ENOENT) {
      throw Error(ErrorKind::kStorage, pattern + ": cannot open a temporary folder: " + std::strerror(errno));
    }
    if (lock_.get() >= 0) (void)::flock(lock_.get(), LOCK_EX);
  } while (!is_still(path_, lock_));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hfta
