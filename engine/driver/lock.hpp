#pragma once
/// One runner per study.

#include <filesystem>

namespace hfta::engine {

/// Holds a study for this process while it lives. The system releases it when the process ends, however it ends.
/// Movable only.
class StudyLock {
 public:
  /// Takes `<folder>/lock`, making the folder where it is absent. Does not wait. Throws Error{kBusy} naming the process
  /// and host of the holder, Error{kStorage} if the file cannot be made.
  explicit StudyLock(const std::filesystem::path& folder);
  ~StudyLock();
  StudyLock(StudyLock&& other) noexcept;
  StudyLock& operator=(StudyLock&& other) noexcept;
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace hfta::engine
