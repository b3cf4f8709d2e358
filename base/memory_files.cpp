#include "base/memory_files.hpp"

#include "base/error.hpp"

namespace hfta {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::kStorage, path.string() + ": " + what);
}

}  // namespace

std::vector<std::byte> MemoryFiles::read(const std::filesystem::path& path, std::size_t limit) {
  const std::lock_guard guard(mutex_);
  const auto folder = folders_.find(path.parent_path());
  if (folder == folders_.end()) refuse(path, "cannot open: no such folder");
  const auto file = folder->second.find(path.filename().string());
  if (file == folder->second.end()) refuse(path, "cannot open: no such file");
  if (file->second.size() > limit) refuse(path, "larger than " + std::to_string(limit) + " bytes");
  return file->second;
}

bool MemoryFiles::exists(const std::filesystem::path& path) {
  const std::lock_guard guard(mutex_);
  const auto folder = folders_.find(path.parent_path());
  return folder != folders_.end() && folder->second.contains(path.filename().string());
}

void MemoryFiles::write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  faults_->reach("file-written");
  const std::lock_guard guard(mutex_);
  folders_[path.parent_path()][path.filename().string()].assign(bytes.begin(), bytes.end());
}

void MemoryFiles::remove(const std::filesystem::path& path) {
  const std::lock_guard guard(mutex_);
  const auto folder = folders_.find(path.parent_path());
  if (folder != folders_.end()) folder->second.erase(path.filename().string());
}

std::vector<std::string> MemoryFiles::list(const std::filesystem::path& path) {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  const auto folder = folders_.find(path);
  if (folder == folders_.end()) return names;
  for (const auto& [name, bytes] : folder->second) names.push_back(name);
  return names;
}

}  // namespace hfta
