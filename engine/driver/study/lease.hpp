#pragma once
/// The lease of a study, which only one process at a time holds.

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// The heartbeat by which a holder shows that it is alive.
struct Heartbeat {
  double period = 1;  ///< Seconds between beats.
  int beats = 3;      ///< A holder that misses so many in a row has lost the study.
};

/// Holds a study for this process as long as the object lives. The store records the holder and a fencing number; the
/// heartbeat of the holder's mark (storage::HolderMark) shows that the holder is alive. A process that takes the study
/// over raises the number; writes of the earlier holder then change nothing, see storage::Store::hold().
class StudyLease {
 public:
  /// Takes the study; afterwards `store` writes to it by this lease alone. If the holder is known to be dead or has
  /// released the study, takes it at once. Otherwise watches the holder: as soon as its heartbeat changes, throws
  /// Error{kBusy} naming its process and host; if the heartbeat does not change for Heartbeat::beats periods, takes the
  /// study over. So this blocks for at most about one period if the study is being run, and for Heartbeat::beats
  /// periods if its holder hangs. Only `clock`'s seconds() are used: two machines' wall clocks are never compared.
  /// Throws Error{kStorage} if a mark cannot be made, and whatever the store throws.
  StudyLease(storage::Store& store, const std::string& study, const Clock& clock, const Heartbeat& heartbeat = {});

  /// Throws Error{kStorage} if the mark is gone. This tells a holder that was suspended, without reading the
  /// store, that another process has taken the study. Call it before each change of the study's files, which the
  /// store's fencing number cannot protect: then a holder that was suspended during the takeover changes no file when
  /// it wakes up, unless it was suspended between this call and the change itself. Thread-safe.
  void check_held() const { mark_->check_held(); }

 private:
  std::unique_ptr<storage::HolderMark> mark_;  ///< Its destructor releases the study; the number stays in the store.
};

}  // namespace hfta::engine
