#pragma once
/// Files in memory, for simulations and tests.

#include <map>
#include <mutex>

#include "base/faults.hpp"
#include "base/files.hpp"

namespace hfta {

/// Thread-safe. Every write reaches the fault "file-written" before the file is there.
class MemoryFiles final : public Files {
 public:
  /// `faults` must outlive it.
  explicit MemoryFiles(const Faults& faults) : faults_(&faults) {}
  /// Replaces the faults from now on; not while another thread calls. Files stay.
  void use(const Faults& faults) { faults_ = &faults; }

  [[nodiscard]] std::vector<std::byte> read(const std::filesystem::path& path, std::size_t limit) override;
  [[nodiscard]] bool exists(const std::filesystem::path& path) override;
  void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) override;
  void remove(const std::filesystem::path& path) override;
  [[nodiscard]] std::vector<std::string> list(const std::filesystem::path& folder) override;

 private:
  const Faults* faults_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::map<std::string, std::vector<std::byte>>> folders_;
};

}  // namespace hfta
