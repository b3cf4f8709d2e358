#pragma once
/// One runner per study.

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// How a holder shows that it lives.
struct Heartbeat {
  double period = 1;  ///< Seconds between beats.
  int beats = 3;      ///< A holder that misses so many in a row has lost the study.
};

/// Holds a study for this process while it lives. Who holds it stands in the store, with a fencing number; that it
/// lives shows in the holder's mark (storage::HolderMark), which beats. Whoever takes the study over raises the number:
/// what the earlier holder's store then tries to write changes nothing, see storage::Store::hold().
class StudyLease {
 public:
  /// Takes the study; afterwards `store` writes to it by this lease alone. A holder that is known to be dead, or has
  /// let go, is followed at once. Any other is watched: as soon as its beat moves, throws Error{kBusy} naming its
  /// process and host; one whose beat stands still for all beats is taken over from. So this blocks for at most a
  /// period or so where the study is being run, for Heartbeat::beats periods where its holder hangs. Only `clock`'s
  /// seconds() are used: two machines' wall clocks are never compared. Throws Error{kStorage} if a mark cannot be left,
  /// and whatever the store throws.
  StudyLease(storage::Store& store, const std::string& study, const Clock& clock, const Heartbeat& heartbeat = {});

  /// Throws Error{kStorage} if the mark is gone, which is how a holder that stood still learns, without asking the
  /// store, that it was taken over from. For use before each change of the study's files, which the store's fencing
  /// number cannot protect: then one that slept through the takeover changes none when it wakes up, unless it slept
  /// between this call and the change itself. Thread-safe.
  void check_held() const { mark_->check_held(); }

 private:
  std::unique_ptr<storage::HolderMark> mark_;  ///< Lets go when it goes; the number stays in the store.
};

}  // namespace hfta::engine
