#pragma once
/// A disk that fails when asked: an SQLite VFS over the machine's own.

#include <functional>

namespace hfta::storage::testing {

/// While it lives, every connection that is opened goes through it. One at a time. Connections must be closed first.
class FaultyDisk {
 public:
  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// The `n`th change of the disk from now on (1: the next; a write, truncation, sync or removal) and, if `for_ever`,
  /// all after it fail with that SQLite code. n = 0: none fails.
  void fail_at(int n, int code, bool for_ever);
  /// Called before each change with its count from the last fail_at or observe on: what lies on the disk then is what a
  /// process killed there leaves.
  void observe(std::function<void(int)> observer);
  /// Changes since the last fail_at or observe.
  [[nodiscard]] int changes() const;
  /// Reads since then; of a file that another connection has changed, as many as pages are looked at.
  [[nodiscard]] int reads() const;
};

}  // namespace hfta::storage::testing
