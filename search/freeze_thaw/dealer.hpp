#pragma once
/// Deals the slots to the candidates that promise most, by what their curves are forecast to come to.
/// Internal to freeze_thaw.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "search/freeze_thaw/curve_process.hpp"
#include "search/sampler.hpp"

namespace hfta::search::freeze_thaw {

/// A slot's next trial.
struct Pick {
  int trial = kNoTrial;  ///< kNoTrial: a new one.
  Vector x;              ///< Its configuration.
};

/// How many picks are wanted: until there are `slots`, and `least_new` new ones among them, or nothing is left to pick.
/// The picks of one request begin as those of another that differs in these two.
struct Request {
  int slots = 1;
  int room = 0;  ///< The most of them that may be new; at least `least_new`.
  int least_new = 0;
};

/// A stage of training: a new trial is in stage 0, one of less than eta epochs in stage 1, of less than eta^2 in
/// stage 2, and so on.
[[nodiscard]] int stage_of(int epochs, int eta);

/// Trials that wait, then new configurations: first the next ones of a sequence that fills the space, then others.
struct Candidates {
  std::vector<Pick> picks;
  std::vector<int> epochs;   ///< Epochs that each has trained.
  std::vector<double> best;  ///< The least value that each has shown; of new ones nothing.
  std::size_t waiting = 0, sequence = 0;

  [[nodiscard]] std::size_t size() const { return picks.size(); }
  [[nodiscard]] bool is_new(std::size_t i) const { return i >= waiting; }
  void add(Pick pick, int trained, double least) {
    picks.push_back(std::move(pick));
    epochs.push_back(trained);
    best.push_back(least);
  }
};

/// Deals slots once. A candidate promises its expected improvement on the least value known so far, both without the
/// noise of values: one that was low by chance would leave nothing to improve. A new one promises what its
/// configuration does, without the chance that is a trial's own: neighbours of the best trial would be tried again and
/// again for theirs.
///
/// Every other slot goes to the candidate that promises most for each epoch that it has left (expected improvement per
/// second: Snoek, Larochelle and Adams, "Practical Bayesian Optimization of Machine Learning Algorithms", NIPS 2012,
/// section 3.2). That is right if forecasts are. The slots between are dealt to the stages in turn, so that there are
/// curves of all lengths to forecast from, however wrong forecasts are: among trials of less than eta epochs to the one
/// that promises most, among others to the one with the best value so far, as successive halving would.
///
/// `random_percent` of the new configurations are not picked by what they promise: they are next in the sequence.
class Dealer {
 public:
  /// `forecast`: values of the candidates' last epochs. `feasible`: added to the logarithm of what each promises.
  Dealer(Candidates candidates, CurveForecast forecast, Vector feasible, const FreezeThawOptions& options,
         const CountedRandom& random);

  /// `number`: the first slot's, where slots are numbered through the study. REQUIRES that it was not called before.
  [[nodiscard]] std::vector<Pick> deal(std::uint64_t number, const Request& request);

 private:
  using Choice = std::optional<std::size_t>;
  [[nodiscard]] Choice of_slot(std::uint64_t number, bool new_ones);
  [[nodiscard]] Choice of_stage(int stage, bool new_ones);
  [[nodiscard]] Choice most_per_epoch(bool new_ones);
  [[nodiscard]] Choice new_one();
  /// The candidate of [first, last) with the largest `worth`; `worth` gives nullopt for those to be left out.
  template <typename Worth>
  [[nodiscard]] Choice best_of(std::size_t first, std::size_t last, Worth worth) const;
  [[nodiscard]] double promise(std::size_t i) const;
  void take(std::size_t i);

  Candidates from_;
  CurveForecast forecast_;
  Vector feasible_;
  FreezeThawOptions options_;
  CountedRandom random_;
  std::vector<bool> gone_;
  std::vector<Pick> picks_;
  int made_new_ = 0;
};

}  // namespace hfta::search::freeze_thaw
