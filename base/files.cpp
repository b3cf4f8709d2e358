#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace hfta {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* action, int error, const std::string& more = {}) {
  throw Error(ErrorKind::kStorage,
              fmt::format("{}: cannot {}: {}{}", path.string(), action, std::strerror(error), more));
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Opens a folder on the way to a file that the user named: follows links, and makes what is missing.
Folder made_by_user(const fs::path& path) {
  std::error_code ignored;
  const fs::path name = path.filename();
  if (fs::is_directory(path, ignored) || name == "." || name == "..") return Folder(path);
  const Folder above = made_by_user(folder_of(path));
  return name.empty() ? Folder(path) : above.made_folder(name.string());
}

// The bytes that a full disk lacks, as far as the system says it; "" for any other error.
std::string shortage(const Folder& folder, int error, std::size_t needed) {
  if (error != ENOSPC && error != EDQUOT) return {};
  const std::optional<std::size_t> room = folder.room();
  const std::string have = room && error == ENOSPC ? fmt::format(", have {}", *room) : "";
  return fmt::format(" (need {} bytes{}); free some space, then run the same command again", needed, have);
}

}  // namespace

// Without a root, every path is one that the user named.
std::optional<Folder> SystemFiles::find(const fs::path& folder) const {
  if (!root_.empty()) return Folder::find(root_, folder);
  std::error_code error;
  if (!fs::exists(folder, error) && (!error || error == std::errc::no_such_file_or_directory)) return std::nullopt;
  return Folder(folder);
}

std::vector<std::byte> SystemFiles::read(const fs::path& path, std::size_t limit) {
  if (root_.empty()) {
    int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (number < 0 && errno == EINTR) number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (number < 0) fail(path, "open", errno);
    return read_rest(Descriptor(number), path, limit);
  }
  const std::optional<Folder> folder = find(folder_of(path));
  const std::optional<Descriptor> file = folder ? folder->file(path.filename().string(), O_RDONLY) : std::nullopt;
  if (!file) fail(path, "open", ENOENT);
  return read_rest(*file, path, limit);
}

bool SystemFiles::exists(const fs::path& path) {
  const std::optional<Folder> folder = find(folder_of(path));
  return folder && folder->has_file(path.filename().string());
}

void SystemFiles::write_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  const fs::path place = folder_of(path);
  const std::string name = path.filename().string();
  std::optional<Folder> found = find(place);
  const Folder folder = found ? std::move(*found) : root_.empty() ? made_by_user(place) : Folder::make(root_, place);
  auto [temporary, file] = folder.new_file(name + ".tmp.");
  try {
    if (const int reason = write_all(file.get(), bytes); reason != 0) {
      fail(path, "write", reason, shortage(folder, reason, bytes.size()));
    }
    reach("file-written");
    if (const int reason = sync_file(file); reason != 0) {
      fail(path, "sync", reason, shortage(folder, reason, bytes.size()));
    }
    reach("file-synced");
    check_allowed();
    if (const int reason = put(folder, temporary, name); reason != 0) fail(path, "rename to", reason);
  } catch (const Error&) {
    try {
      folder.remove(temporary);
    } catch (const Error&) {  // the first failure is the one that is reported
    }
    throw;
  }
  reach("file-renamed");
  folder.sync();
  reach("folder-synced");
}

// Among our own files, a folder where a file belongs is nobody's: it is put aside, with all that is in it.
int SystemFiles::put(const Folder& folder, const std::string& temporary, const std::string& name) const {
  const int reason = folder.rename(temporary, name);
  if (reason != EISDIR || root_.empty()) return reason;
  const int moved = folder.rename(name, temporary + ".displaced");
  return moved != 0 ? moved : folder.rename(temporary, name);
}

void SystemFiles::remove(const fs::path& path) {
  check_allowed();
  if (const std::optional<Folder> folder = find(folder_of(path))) folder->remove(path.filename().string());
}

std::vector<std::string> SystemFiles::list(const fs::path& folder) {
  const std::optional<Folder> found = find(folder);
  return found ? found->files() : std::vector<std::string>();
}

}  // namespace hfta
