#include "base/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/error.hpp"

namespace hfta {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t kRandomCharacters = 16;

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kStorage, path.string() + ": " + what);
}

// Repeats a call that a signal may interrupt until it is through.
template <typename Call>
auto through(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a file" : "a device";
}

std::string random_characters() {
  std::uint64_t bits = 0;
  if (through([&] { return ::getrandom(&bits, sizeof bits, 0); }) != sizeof bits) {
    throw Error(ErrorKind::kStorage, fmt::format("cannot draw a file's name: {}", std::strerror(errno)));
  }
  return fmt::format("{:016x}", bits);
}

// The components of `path` below `root`.
std::vector<std::string> components_below(const fs::path& root, const fs::path& path) {
  const fs::path below = path.lexically_normal().lexically_relative(root.lexically_normal());
  std::vector<std::string> names;
  for (const fs::path& part : below) {
    if (part != "" && part != ".") names.push_back(part.string());
  }
  if (below.empty() || std::count(names.begin(), names.end(), "..") > 0) {
    throw Error(ErrorKind::kInternal,
                fmt::format("folder: found {}, wanted a path below {}", path.string(), root.string()));
  }
  return names;
}

struct CloseFolder {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Folder::Folder(fs::path path)
    : Folder(path, [&] {
        const int number = through([&] { return ::open(path.c_str(), kFolderFlags); });
        if (number < 0) refuse(path, fmt::format("cannot open: {}", std::strerror(errno)));
        return Descriptor(number);
      }()) {}

Folder::Folder(fs::path path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {
  struct stat found {};
  if (::fstat(descriptor_.get(), &found) != 0) refuse(path_, fmt::format("cannot read: {}", std::strerror(errno)));
  owner_ = found.st_uid;
  open_to_all_ = (found.st_mode & S_IWOTH) != 0;
}

std::optional<Folder> Folder::find(const fs::path& root, const fs::path& path) {
  std::optional<Folder> here(std::in_place, root);
  for (const std::string& name : components_below(root, path)) {
    if (here) here = here->folder(name);
  }
  return here;
}

Folder Folder::make(const fs::path& root, const fs::path& path) {
  Folder here(root);
  for (const std::string& name : components_below(root, path)) here = here.made_folder(name);
  return here;
}

void Folder::fail(const std::string& name, const char* action, int error) const {
  refuse(path_ / name, fmt::format("cannot {}: {}", action, std::strerror(error)));
}

void Folder::check_owner(const std::string& name, unsigned owner) const {
  if (!open_to_all_ || owner == ::geteuid() || owner == owner_) return;
  refuse(path_ / name, fmt::format("belongs to user {}, in a folder that anyone may write to; wanted your own", owner));
}

std::optional<Folder> Folder::folder(const std::string& name) const {
  Descriptor found(through([&] { return ::openat(descriptor_.get(), name.c_str(), kFolderFlags | O_NOFOLLOW); }));
  if (found.get() < 0) {
    const int reason = errno;
    if (reason == ENOENT) return std::nullopt;
    struct stat entry {};
    const bool seen = ::fstatat(descriptor_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0;
    if (seen && !S_ISDIR(entry.st_mode)) {
      refuse(path_ / name, fmt::format("found {}, wanted a folder; move it away", kind_of(entry.st_mode)));
    }
    fail(name, "open", reason);
  }
  Folder below(path_ / name, std::move(found));
  check_owner(name, below.owner_);
  return below;
}

Folder Folder::made_folder(const std::string& name) const {
  const int made_it = through([&] { return ::mkdirat(descriptor_.get(), name.c_str(), 0777); });
  if (made_it != 0 && errno != EEXIST) fail(name, "create", errno);
  // The folder must survive a crash that a file in it survives. One that was there may be from a process that was
  // killed before it synced.
  sync();
  std::optional<Folder> made = folder(name);
  if (!made) fail(name, "create", ENOENT);
  return std::move(*made);
}

// O_NONBLOCK: if a pipe is in a file's place, opening it would wait for its writer.
std::optional<Descriptor> Folder::file(const std::string& name, int flags) const {
  const int all = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Descriptor found(through([&] { return ::openat(descriptor_.get(), name.c_str(), all); }));
  const int reason = found.get() < 0 ? errno : 0;
  if (reason == ENOENT) return std::nullopt;
  struct stat entry {};
  const bool seen = reason == 0 ? ::fstat(found.get(), &entry) == 0
                                : ::fstatat(descriptor_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0;
  if (seen && !S_ISREG(entry.st_mode)) {
    refuse(path_ / name, fmt::format("found {}, wanted a file; move it away", kind_of(entry.st_mode)));
  }
  if (reason != 0) fail(name, "open", reason);
  if (!seen) fail(name, "read", errno);
  check_owner(name, entry.st_uid);
  return found;
}

std::pair<std::string, Descriptor> Folder::new_file(const std::string& prefix) const {
  for (;;) {
    std::string name = prefix.substr(0, NAME_MAX - kRandomCharacters) + random_characters();
    const int number = through([&] {
      return ::openat(descriptor_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    });
    if (number >= 0) return {std::move(name), Descriptor(number)};
    if (errno != EEXIST) fail(name, "create", errno);
  }
}

bool Folder::has_file(const std::string& name) const {
  struct stat entry {};
  return ::fstatat(descriptor_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(entry.st_mode);
}

// `type`: as readdir gives it.
void Folder::list(const std::function<void(const std::string& name, unsigned char type)>& take) const {
  const int number = through([&] { return ::openat(descriptor_.get(), ".", kFolderFlags); });  // a position of its own
  const std::unique_ptr<DIR, CloseFolder> stream(number < 0 ? nullptr : ::fdopendir(number));
  if (stream == nullptr) {
    const int reason = errno;
    if (number >= 0) ::close(number);
    refuse(path_, fmt::format("cannot list: {}", std::strerror(reason)));
  }
  for (errno = 0; const dirent* entry = ::readdir(stream.get()); errno = 0) take(entry->d_name, entry->d_type);
  if (errno != 0) refuse(path_, fmt::format("cannot list: {}", std::strerror(errno)));
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  list([&](const std::string& name, unsigned char type) {
    if (type == DT_REG || (type == DT_UNKNOWN && has_file(name))) names.push_back(name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Folder::Entry> Folder::entries() const {
  std::vector<Entry> found;
  list([&](const std::string& name, unsigned char) {
    struct stat entry {};
    if (name == "." || name == "..") return;
    if (::fstatat(descriptor_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0) return;  // gone again
    found.push_back({name, kind_of(entry.st_mode), S_ISREG(entry.st_mode), S_ISDIR(entry.st_mode)});
  });
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return found;
}

std::string Folder::move(const std::string& name, const Folder& to) const {
  constexpr int kMostNames = 1000;
  for (int i = 1; i <= kMostNames; ++i) {
    std::string wanted = i == 1 ? name : fmt::format("{}.{}", name, i);
    struct stat taken {};
    if (::fstatat(to.descriptor_.get(), wanted.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0) continue;
    const auto call = [&] { return ::renameat(descriptor_.get(), name.c_str(), to.descriptor_.get(), wanted.c_str()); };
    if (through(call) != 0) fail(name, "move", errno);
    to.sync();
    sync();
    return wanted;
  }
  fail(name, "move", EEXIST);
}

int Folder::rename(const std::string& from, const std::string& to) const {
  const int folder = descriptor_.get();
  return through([&] { return ::renameat(folder, from.c_str(), folder, to.c_str()); }) == 0 ? 0 : errno;
}

void Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor_.get(), name.c_str(), 0) != 0 && errno != ENOENT) fail(name, "remove", errno);
}

void Folder::sync() const {
  if (const int reason = sync_file(descriptor_); reason != 0) {
    refuse(path_, fmt::format("cannot sync: {}", std::strerror(reason)));
  }
}

std::optional<std::size_t> Folder::room() const {
  struct statvfs system {};
  if (::fstatvfs(descriptor_.get(), &system) != 0) return std::nullopt;
  return static_cast<std::size_t>(system.f_bavail) * system.f_frsize;
}

std::vector<std::byte> read_rest(const Descriptor& file, const fs::path& path, std::size_t limit) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::vector<std::byte> bytes;
  std::vector<std::byte> chunk(kChunk);
  for (;;) {
    const ssize_t got = through([&] { return ::read(file.get(), chunk.data(), chunk.size()); });
    if (got < 0) refuse(path, fmt::format("cannot read: {}", std::strerror(errno)));
    if (got == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(got) > limit) {
      refuse(path, fmt::format("larger than {} bytes", limit));
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
}

int write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = through([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int sync_file(const Descriptor& file) {
  return through([&] { return ::fsync(file.get()); }) == 0 ? 0 : errno;
}

}  // namespace hfta
