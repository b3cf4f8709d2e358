#pragma once
/// Leases and marks, by which processes that run a study, or want to, show that they are alive. A lease names the
/// process that took the study; the mark of this holder shows whether it is alive.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/records.hpp"

namespace hfta::storage {

/// This process's mark at a study. From construction to destruction it exists and has a heartbeat, whatever the process
/// does.
class HolderMark {
 public:
  virtual ~HolderMark() = default;
  /// A token that no other mark has: for the lease that belongs to this mark.
  [[nodiscard]] virtual std::string token() const = 0;
  /// This process, for messages: "process 4711 on host adele".
  [[nodiscard]] virtual std::string holder() const = 0;
  /// Throws Error{kStorage} if the mark was removed: another process has taken the study. Thread-safe; does not ask the
  /// store.
  virtual void check_held() const = 0;
};

/// The marks at one study, for a process that wants to take it. Every failure is an Error{kStorage} that names the
/// place.
class HolderMarks {
 public:
  virtual ~HolderMarks() = default;
  /// The state of a mark at one look.
  struct Sight {
    std::string beat;   ///< Changes with each beat.
    bool dead = false;  ///< Its process is known to have ended. If that cannot be known, only the beat shows it.
  };
  /// The mark that belongs to a lease; nullopt if there is none: its holder has released the study.
  [[nodiscard]] virtual std::optional<Sight> look(const Lease& lease) = 0;
  /// Leaves a mark that beats every `period` seconds.
  [[nodiscard]] virtual std::unique_ptr<HolderMark> leave(double period) = 0;
  /// The names of all marks at the study, whoever left them.
  [[nodiscard]] virtual std::vector<std::string> names() = 0;
  /// No error if there is no such mark.
  virtual void remove(const std::string& name) = 0;
};

/// The state of a mark, for code that only reads.
struct LifeSign {
  bool alive = false;
  double silence = 0;  ///< Seconds since its last beat; infinite where that is not known.
};

}  // namespace hfta::storage
