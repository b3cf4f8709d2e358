#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace hfta {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, const char* action) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(path, action, errno);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(const Descriptor& file, const fs::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// A failed fsync is final: the kernel may already have dropped the dirty pages (ATC'20, "Can Applications Recover
// from fsync Failures?"), so a second try could report success for lost bytes.
void sync(const Descriptor& file, const fs::path& path) {
  if (::fsync(file.get()) != 0) fail(path, "sync", errno);
}

void sync_folder(const fs::path& folder) { sync(Descriptor(folder, O_RDONLY | O_DIRECTORY, "open"), folder); }

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// No two writers share one, neither threads nor processes.
fs::path temporary_for(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}.tmp.{}.{}", path.string(), ::getpid(), count++);
}

}  // namespace

// A folder made here must itself survive the crash, so the one it lies in is synced too.
void make_folders(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  if (const fs::path above = folder_of(folder); above != folder) make_folders(above);
  if (!fs::create_directory(folder, error) && error) fail(folder, "create", error.value());
  sync_folder(folder_of(folder));
}

std::vector<std::byte> SystemFiles::read(const fs::path& path, std::size_t limit) {
  const Descriptor file(path, O_RDONLY, "open");
  std::vector<std::byte> bytes;
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read", errno);
    if (got == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(got) > limit) {
      throw Error(ErrorKind::kStorage, fmt::format("{}: larger than {} bytes", path.string(), limit));
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
}

bool SystemFiles::exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void SystemFiles::write_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  const fs::path folder = folder_of(path);
  make_folders(folder);
  const fs::path temporary = temporary_for(path);
  try {
    {
      const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "create");
      write_all(file, temporary, bytes);
      reach("file-written");
      sync(file, temporary);
    }
    reach("file-synced");
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "rename to", errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  reach("file-renamed");
  sync_folder(folder);
  reach("folder-synced");
}

void SystemFiles::remove(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "remove", errno);
}

std::vector<std::string> SystemFiles::list(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) fail(folder, "list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hfta
