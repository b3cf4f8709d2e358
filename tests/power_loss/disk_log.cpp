// Preloaded into a program, this writes down every change that the program makes below a folder, in order: what a disk
// would see. HFTA_DISK_ROOT names the folder, HFTA_DISK_LOG the file for the log, which recorded_disk.cpp reads.
//
// The program is the real one with the C library's own calls: what it forgets to sync is not in the log as synced.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Left to the end of the process: libraries still write while they are unloaded.
std::recursive_mutex& mutex() {
  static auto* const made = std::make_unique<std::recursive_mutex>().release();
  return *made;
}

const std::string& root() {
  static const auto* const made = std::make_unique<std::string>(variable("HFTA_DISK_ROOT")).release();
  return *made;
}

int log_file() {
  static const int file = next<int(const char*, int, ...)>("open")(variable("HFTA_DISK_LOG").c_str(),
                                                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return file;
}

// Of the log, or another file that nobody asks about: "".
std::string below_root(const fs::path& path) {
  std::string normal = fs::absolute(path).lexically_normal().string();
  if (normal.ends_with('/')) normal.pop_back();
  return !root().empty() && normal.starts_with(root() + "/") ? normal.substr(root().size() + 1) : "";
}

std::string at(int folder, const char* name) {
  if (name[0] == '/' || folder == AT_FDCWD) return below_root(name);
  std::error_code error;
  const fs::path above = fs::read_symlink("/proc/self/fd/" + std::to_string(folder), error);
  return error ? "" : below_root(above / name);
}

std::string of(int file) {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(file), error);
  if (error) return "";
  return path == root() ? "." : below_root(path);
}

unsigned long inode(int file) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

// One line of words and, behind it, `data`. The number before the words: how much had been told on standard error.
void note(const std::string& words, std::string_view data = {}) {
  struct stat told = {};
  if (::fstat(STDERR_FILENO, &told) != 0) told.st_size = 0;
  const std::string line =
      std::to_string(told.st_size) + " " + std::to_string(data.size()) + " " + words + "\n" + std::string(data);
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (real(log_file(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

template <typename Call>
int opened(const std::string& path, int flags, Call call) {
  const std::lock_guard guard(mutex());
  std::error_code error;
  const bool is_new = !path.empty() && !fs::exists(root() + "/" + path, error);
  const int file = call();
  if (file < 0 || path.empty()) return file;
  if (is_new) note("create " + std::to_string(inode(file)) + " " + path);
  if (!is_new && (flags & O_TRUNC) != 0) note("truncate " + std::to_string(inode(file)) + " 0");
  return file;
}

mode_t mode_of(int flags, va_list list) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0; }

// A call that changes names: noted if it succeeds.
template <typename Call>
int renamed(const std::string& words, bool counts, Call call) {
  const std::lock_guard guard(mutex());
  const int code = call();
  if (code == 0 && counts) note(words);
  return code;
}

template <typename Call>
ssize_t written(int file, const void* data, off_t offset, Call call) {
  const std::lock_guard guard(mutex());
  const ssize_t count = call();
  if (count > 0 && !of(file).empty()) {
    note("write " + std::to_string(inode(file)) + " " + std::to_string(offset),
         {static_cast<const char*>(data), static_cast<std::size_t>(count)});
  }
  return count;
}

template <typename Call>
int truncated(int file, off_t size, Call call) {
  const std::lock_guard guard(mutex());
  const int code = call();
  if (code == 0 && !of(file).empty()) note("truncate " + std::to_string(inode(file)) + " " + std::to_string(size));
  return code;
}

template <typename Call>
int synced(int file, Call call) {
  const std::lock_guard guard(mutex());
  struct stat status = {};
  const std::string path = of(file);
  if (path.empty() || ::fstat(file, &status) != 0) return call();
  note(S_ISDIR(status.st_mode) ? "syncfolder " + path : "sync " + std::to_string(status.st_ino));
  return 0;  // the disk is a fake: nobody waits for the real one
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  static auto* const real = next<int(const char*, int, ...)>("open");
  return opened(below_root(path), flags, [&] { return real(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  static auto* const real = next<int(const char*, int, ...)>("open64");
  return opened(below_root(path), flags, [&] { return real(path, flags, mode); });
}
int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  static auto* const real = next<int(int, const char*, int, ...)>("openat");
  return opened(at(folder, path), flags, [&] { return real(folder, path, flags, mode); });
}
int mkostemp(char* pattern, int flags) {
  static auto* const real = next<int(char*, int)>("mkostemp");
  const std::lock_guard guard(mutex());
  const int file = real(pattern, flags);
  if (file >= 0 && !below_root(pattern).empty()) {
    note("create " + std::to_string(inode(file)) + " " + below_root(pattern));
  }
  return file;
}

ssize_t write(int file, const void* data, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  const off_t offset = ::lseek(file, 0, SEEK_CUR);
  return written(file, data, offset, [&] { return real(file, data, size); });
}
ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return written(file, data, offset, [&] { return real(file, data, size, offset); });
}
ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return written(file, data, offset, [&] { return real(file, data, size, offset); });
}
int ftruncate(int file, off_t size) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  return truncated(file, size, [&] { return real(file, size); });
}
int ftruncate64(int file, off64_t size) noexcept {
  static auto* const real = next<int(int, off64_t)>("ftruncate64");
  return truncated(file, size, [&] { return real(file, size); });
}
int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  return synced(file, [&] { return real(file); });
}
int fdatasync(int file) {
  static auto* const real = next<int(int)>("fdatasync");
  return synced(file, [&] { return real(file); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return renamed("mkdir " + below_root(path), !below_root(path).empty(), [&] { return real(path, mode); });
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(int, const char*, mode_t)>("mkdirat");
  return renamed("mkdir " + at(folder, path), !at(folder, path).empty(), [&] { return real(folder, path, mode); });
}
int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  const std::string words = "rename " + below_root(from) + "\t" + below_root(to);
  return renamed(words, !below_root(to).empty(), [&] { return real(from, to); });
}
int renameat(int old_folder, const char* from, int new_folder, const char* to) noexcept {
  static auto* const real = next<int(int, const char*, int, const char*)>("renameat");
  const std::string words = "rename " + at(old_folder, from) + "\t" + at(new_folder, to);
  return renamed(words, !at(new_folder, to).empty(), [&] { return real(old_folder, from, new_folder, to); });
}
int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  return renamed("unlink " + below_root(path), !below_root(path).empty(), [&] { return real(path); });
}
int remove(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("remove");
  return renamed("unlink " + below_root(path), !below_root(path).empty(), [&] { return real(path); });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  return renamed("unlink " + at(folder, path), !at(folder, path).empty(), [&] { return real(folder, path, flags); });
}

}  // extern "C"
