#pragma once
/// The seam for files: what must survive a crash is written through one of these.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/faults.hpp"
#include "base/folder.hpp"

namespace hfta {

/// Thread-safe. Every failure is an Error{kStorage} that names the path and the system's reason.
class Files {
 public:
  virtual ~Files() = default;
  /// The whole file. Throws if it is absent or larger than `limit` bytes.
  [[nodiscard]] virtual std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) = 0;
  /// True if a regular file is there.
  [[nodiscard]] virtual bool exists(const std::filesystem::path& path) = 0;
  /// Replaces `path`, a file or nothing, so that after a crash it holds either the old bytes or the new, never a
  /// mixture: temporary file, fsync, rename, fsync of the folder. Missing parent folders are made.
  virtual void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) = 0;
  /// Removes a file; an absent one is no error.
  virtual void remove(const std::filesystem::path& path) = 0;
  /// Names (not paths) of the regular files in a folder, sorted; empty if the folder is absent.
  [[nodiscard]] virtual std::vector<std::string> list(const std::filesystem::path& folder) = 0;
};

/// The machine's own files. Writing reaches the faults "file-written", "file-synced", "file-renamed" and
/// "folder-synced". The error for a full disk says what was needed and what is left.
///
/// Without a root, paths are the user's: links are followed, and what is read may be a pipe. With one, they lie below
/// it and are ours, in a place where others may meddle (see Folder): no link below the root is followed, no pipe waited
/// for, nothing but regular files read, and a folder in the place of a file that is written is put aside. Temporary
/// files are new ones with names that cannot be guessed.
class SystemFiles final : public Files {
 public:
  SystemFiles() = default;
  /// `faults` must outlive it. Every path must lie below `root`, unless that is empty. `check_allowed` is called just
  /// before a written file takes its name and before a file is removed; what it throws keeps that from happening.
  explicit SystemFiles(const Faults& faults, std::filesystem::path root = {}, std::function<void()> check_allowed = {})
      : faults_(&faults), root_(std::move(root)), check_allowed_(std::move(check_allowed)) {}
  [[nodiscard]] std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) override;
  [[nodiscard]] bool exists(const std::filesystem::path& path) override;
  void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) override;
  void remove(const std::filesystem::path& path) override;
  [[nodiscard]] std::vector<std::string> list(const std::filesystem::path& folder) override;

 private:
  [[nodiscard]] std::optional<Folder> find(const std::filesystem::path& folder) const;
  [[nodiscard]] int put(const Folder& folder, const std::string& temporary, const std::string& name) const;
  void reach(const char* place) const {
    if (faults_ != nullptr) faults_->reach(place);
  }
  void check_allowed() const {
    if (check_allowed_) check_allowed_();
  }
  const Faults* faults_ = nullptr;
  std::filesystem::path root_;
  std::function<void()> check_allowed_;
};

}  // namespace hfta
