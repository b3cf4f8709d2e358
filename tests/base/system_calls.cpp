#include "system_calls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace hfta::testing {
namespace {

thread_local CallFaults* active = nullptr;

// 0, or the errno with which the call at hand fails.
int verdict(const char* call) {
  CallFaults* const faults = active;
  if (faults == nullptr) return 0;
  active = nullptr;  // what bookkeeping calls is libc's
  faults->calls.emplace_back(call);
  const auto count = static_cast<int>(faults->calls.size());
  int error = 0;
  if (faults->interrupt && count % 2 == 1) error = EINTR;
  if (count == faults->fail_at) {
    faults->failed = call;
    error = faults->error;
  } else if (faults->for_good && faults->failed == call) {
    error = faults->error;
  }
  active = faults;
  return error;
}

template <typename... Arguments>
long make(const char* name, long number, Arguments... arguments) {
  if (const int error = verdict(name); error != 0) {
    errno = error;
    return -1;
  }
  return ::syscall(number, arguments...);
}

std::size_t at_most(std::size_t size) {
  return active != nullptr && active->most > 0 ? std::min(size, active->most) : size;
}

}  // namespace

CallFaults::CallFaults() { active = this; }
CallFaults::~CallFaults() { active = nullptr; }

}  // namespace hfta::testing

// The linker takes these before libc's.
extern "C" {
using hfta::testing::at_most;
using hfta::testing::make;

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(make("openat", SYS_openat, folder, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(make("open", SYS_openat, AT_FDCWD, path, flags, mode));
}
ssize_t read(int file, void* to, size_t size) { return make("read", SYS_read, file, to, at_most(size)); }
ssize_t write(int file, const void* from, size_t size) { return make("write", SYS_write, file, from, at_most(size)); }
int fsync(int file) { return static_cast<int>(make("fsync", SYS_fsync, file)); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return static_cast<int>(make("renameat", SYS_renameat, from_folder, from, to_folder, to));
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return static_cast<int>(make("mkdirat", SYS_mkdirat, folder, path, mode));
}
}
