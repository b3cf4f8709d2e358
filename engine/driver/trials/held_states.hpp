#pragma once
/// Which training states wait in memory, how many bytes they have, and which of them are not on disk yet.

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace hfta::engine {

/// The account of the states that trials hold while they are in no slot; the states themselves are in the trials'
/// records. Thousands may wait for a verdict, so no call walks all of them. Trials are identified by their draw. Not
/// thread-safe.
class HeldStates {
 public:
  /// The trial holds so many bytes from now on. `unsaved`: its state is newer than its checkpoint.
  void hold(int draw, std::size_t bytes, bool unsaved);
  /// The trial holds nothing any more; does nothing if it held nothing.
  void let_go(int draw);

  /// Trials that hold a state in memory, with its bytes.
  [[nodiscard]] const std::map<int, std::size_t>& by_draw() const { return by_draw_; }
  /// Bytes of all held states.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The trials whose state is newer than its checkpoint, by draw. Each state is returned once.
  [[nodiscard]] std::set<int> take_unsaved() { return std::exchange(unsaved_, {}); }

 private:
  std::map<int, std::size_t> by_draw_;
  std::set<int> unsaved_;  ///< Some of by_draw_.
  std::size_t bytes_ = 0;  ///< Sum of by_draw_.
};

}  // namespace hfta::engine
