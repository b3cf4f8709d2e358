#pragma once
/// The weights that a study with repetitions may still need, besides those of its best trials.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "trials/repetition.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The best repetition so far of every configuration that has not ended, and that of the best configuration that has;
/// ties to the lower draw, as in trials::best_of. Empty in a study without repetitions. Not thread-safe.
class BestRepetitions {
 public:
  BestRepetitions(const trials::Repetitions& repetitions, trials::Goal goal) : repetitions_(repetitions), goal_(goal) {}

  /// A trial has ended. To be called once for each; `value`: set for a COMPLETE one.
  void end(int draw, int number, trials::State state, std::optional<double> value);
  [[nodiscard]] bool contains(int number) const;
  /// Numbers that are no longer contained, or never were, since they were ended; each is returned once.
  [[nodiscard]] std::vector<int> take_released() { return std::exchange(released_, {}); }

 private:
  struct Best {
    double value = 0;
    int draw = 0, number = 0;
  };
  struct Open {
    std::vector<double> values;  ///< Values of the repetitions that have ended; NaN: failed.
    bool pruned = false;         ///< One of them was stopped: the configuration has no value.
    std::optional<Best> best;    ///< The best of its repetitions.
  };
  void close(int configuration, const Open& open);
  [[nodiscard]] bool beats(const Best& one, const std::optional<Best>& other) const;
  /// Replaces `place` by `one` where that is better, and releases the one of them that is worse.
  void keep_better(std::optional<Best>& place, const Best& one);

  trials::Repetitions repetitions_;
  trials::Goal goal_;
  std::map<int, Open> open_;  ///< By configuration.
  std::optional<Best> best_;  ///< Its value and draw are the configuration's, its number the repetition's.
  std::vector<int> released_;
};

}  // namespace hfta::engine
