#pragma once
/// How processes that run a study, or want to, show that they live. A lease says who took the study; its holder's mark
/// says whether it lives.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/records.hpp"

namespace hfta::storage {

/// This process's mark at a study: there, and beating beside whatever the process does, from construction to
/// destruction.
class HolderMark {
 public:
  virtual ~HolderMark() = default;
  /// No other mark has it: for the lease that goes with this mark.
  [[nodiscard]] virtual std::string token() const = 0;
  /// This process, for people: "process 4711 on host adele".
  [[nodiscard]] virtual std::string holder() const = 0;
  /// Throws Error{kStorage} if the mark was removed: another process has taken the study. Thread-safe; does not ask the
  /// store.
  virtual void check_held() const = 0;
};

/// The marks at one study, for a process that wants it. Every failure is an Error{kStorage} that names the place.
class HolderMarks {
 public:
  virtual ~HolderMarks() = default;
  /// What one look at a mark shows.
  struct Sight {
    std::string beat;   ///< Becomes another with each beat.
    bool dead = false;  ///< Its process is known to have ended. Where that cannot be known, the beat has to tell.
  };
  /// The mark that goes with a lease; nullopt if it is not there: its holder has let go.
  [[nodiscard]] virtual std::optional<Sight> look(const Lease& lease) = 0;
  /// Leaves a mark that beats every `period` seconds.
  [[nodiscard]] virtual std::unique_ptr<HolderMark> leave(double period) = 0;
  /// The names of all marks at the study, whoever left them.
  [[nodiscard]] virtual std::vector<std::string> names() = 0;
  /// One that is not there is no error.
  virtual void remove(const std::string& name) = 0;
};

/// What a mark shows to somebody who only looks.
struct LifeSign {
  bool alive = false;
  double silence = 0;  ///< Seconds since its last beat; infinite where that is not known.
};

}  // namespace hfta::storage
