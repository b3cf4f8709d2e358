#pragma once
/// The bracket of Hyperband that each draw belongs to, computed from the draw's number alone, so that a bracket's size
/// does not depend on which of its trials were seen.

#include <cstdint>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

/// The bracket that a draw belongs to.
struct BracketPosition {
  std::int64_t bracket = 0;  ///< Brackets begun before this one, over all passes.
  int first = 0;             ///< The bracket's first draw.
  int size = 0;              ///< Draws in the bracket; fewer than its full size where a run_cap cuts it.
  std::size_t kind = 0;      ///< Index into hyperband_brackets().
};

/// Value type; cheap to copy. Memory does not grow with the number of draws.
class BracketLayout {
 public:
  /// Throws Error{kConfig} if the options are impossible, a cap is below 1 or caps descend.
  BracketLayout(const HyperbandOptions& options, std::vector<int> run_caps);

  [[nodiscard]] int capacity() const { return segments_.back().end; }
  /// `draw` in 0..capacity()-1; throws Error{kInternal} otherwise.
  [[nodiscard]] BracketPosition place(int draw) const;
  /// The bracket's rungs by the floor rule; in a cut one, where that gives 0, one trial goes on.
  [[nodiscard]] std::vector<Rung> rungs(const BracketPosition& place) const;
  /// Trial-epochs of draws 0..draws-1 if none fails; the last bracket, if not wholly among them, costs its share.
  [[nodiscard]] std::int64_t cost(std::int64_t draws) const;

 private:
  // Draws between two caps: whole passes, begun with the bracket after the one that the cap before cut.
  struct Segment {
    int first = 0, end = 0;
    std::size_t start = 0;      // kind of the first bracket
    std::int64_t brackets = 0;  // begun before this segment
  };
  struct Step {
    std::int64_t passes = 0;   // whole passes before the bracket, in its segment
    std::size_t brackets = 0;  // and whole brackets after those
    BracketPosition place;
  };
  [[nodiscard]] Step find(const Segment& segment, int draw) const;

  int eta_;
  std::vector<std::vector<Rung>> kinds_;
  std::vector<std::int64_t> costs_;  // of each kind at full size
  std::int64_t pass_size_ = 0, pass_cost_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace hfta::search
