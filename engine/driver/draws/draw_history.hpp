#pragma once
/// The history that draws are given (search/history.hpp), updated as trials report and end.

#include <optional>
#include <utility>
#include <vector>

#include "search/history.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Trials are identified by their draw. A report is added when its round is over. Not thread-safe.
class DrawHistory {
 public:
  void add(const trials::Params& params) { trials_.push_back({params}); }
  /// Forgets the latest draw, which has neither begun nor ended.
  void pop() { trials_.pop_back(); }
  /// The trial has trained its next epoch: the values it would have if it ended now, which are those of an earlier
  /// epoch, or none, if it diverged.
  void report(int draw, bool diverged, const std::vector<double>& values);
  /// `round`: see Trial::ended_round; unset: known to every later draw.
  void end(int draw, trials::State state, std::optional<int> round);

  /// The history for a draw that is made when `rounds` rounds are over. `rounds` never decreases from call to call.
  [[nodiscard]] const search::History& after(int rounds);

 private:
  struct End {
    int draw = 0, round = 0;
    trials::State state = trials::State::kComplete;
  };
  search::History trials_;
  std::vector<End> ends_;  ///< Ends that no draw has seen yet.
};

}  // namespace hfta::engine
