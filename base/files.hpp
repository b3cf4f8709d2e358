#pragma once
/// The seam for files: what must survive a crash is written through one of these.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/faults.hpp"

namespace hfta {

/// Thread-safe. Every failure is an Error{kStorage} that names the path and the system's reason.
class Files {
 public:
  virtual ~Files() = default;
  /// The whole file. Throws if it is absent or larger than `limit` bytes.
  [[nodiscard]] virtual std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) = 0;
  [[nodiscard]] virtual bool exists(const std::filesystem::path& path) = 0;
  /// Replaces `path` so that after a crash it holds either the old bytes or the new, never a mixture: temporary file,
  /// fsync, rename, fsync of the folder. Missing parent folders are made.
  virtual void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) = 0;
  /// Absent is no error.
  virtual void remove(const std::filesystem::path& path) = 0;
  /// Names (not paths) in a folder, sorted; empty if the folder is absent.
  [[nodiscard]] virtual std::vector<std::string> list(const std::filesystem::path& folder) = 0;
};

/// Makes a folder, and those above it that are absent; they survive a crash of the machine once this returns. Throws
/// Error{kStorage}.
void make_folders(const std::filesystem::path& folder);

/// The machine's own files. Writing reaches the faults "file-written", "file-synced", "file-renamed" and
/// "folder-synced".
class SystemFiles final : public Files {
 public:
  SystemFiles() = default;
  /// `faults` must outlive it.
  explicit SystemFiles(const Faults& faults) : faults_(&faults) {}
  [[nodiscard]] std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) override;
  [[nodiscard]] bool exists(const std::filesystem::path& path) override;
  void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) override;
  void remove(const std::filesystem::path& path) override;
  [[nodiscard]] std::vector<std::string> list(const std::filesystem::path& folder) override;

 private:
  void reach(const char* place) const {
    if (faults_ != nullptr) faults_->reach(place);
  }
  const Faults* faults_ = nullptr;
};

}  // namespace hfta
