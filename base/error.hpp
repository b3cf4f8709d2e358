#pragma once
/// The one exception type of the project. Libraries throw it; only `main` turns its kind into an exit code.

#include <stdexcept>
#include <string>
#include <utility>

namespace hfta {

/// Kind of failure, coarse enough to decide the process's exit code (shown) or a trial's fate.
enum class ErrorKind {
  kConfig,    ///< Usage, configuration, a model or data file that cannot be used (2).
  kStorage,   ///< The study store or a checkpoint cannot be read or written (3).
  kLocked,    ///< Another program holds the store for now; trying again may help (3).
  kDevice,    ///< A device is absent or failed (4).
  kMemory,    ///< A device's memory does not suffice; fewer slots may do (4).
  kInternal,  ///< A bug of ours: an invariant does not hold (5).
  kBusy,      ///< The study is being run by another process (6).
};

/// Message rule: `place: what: found X, wanted Y`. One line, no trailing full stop needed.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace hfta
