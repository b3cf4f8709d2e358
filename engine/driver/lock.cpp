#include "engine/driver/lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

// What the holder wrote: "process 4711 on host adele".
std::string holder(int fd) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string words = printable(std::string(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0));
  return words.empty() ? "another process" : words;
}

}  // namespace

StudyLock::StudyLock(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, "create", error.value());
  const fs::path path = folder / "lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(path, "open", errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string who = holder(fd_);
    ::close(std::exchange(fd_, -1));
    if (reason != EWOULDBLOCK) fail(path, "lock", reason);
    throw Error(ErrorKind::kBusy,
                fmt::format("{}: the study is being run by {}; stop that one first", path.string(), who));
  }
  const std::string self = fmt::format("process {} on host {}", ::getpid(), host_name());
  // The text only serves the message above; the lock itself is the kernel's.
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, self.data(), self.size(), 0) < 0) {
    const int reason = errno;
    ::close(std::exchange(fd_, -1));
    fail(path, "write", reason);
  }
}

StudyLock::~StudyLock() {
  if (fd_ >= 0) ::close(fd_);
}

StudyLock::StudyLock(StudyLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StudyLock& StudyLock::operator=(StudyLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace hfta::engine
