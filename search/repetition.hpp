#pragma once
/// Searching configurations whose trials are repetitions (trials/repetition.hpp): a configuration is judged as one.

#include <memory>

#include "search/history.hpp"
#include "search/scheduler.hpp"
#include "trials/repetition.hpp"

namespace hfta::search {

/// Judges configurations by `judge`, which sees each as one trial whose value after an epoch is that of its repetitions
/// (trials::value_of). Trials here are draws. After each epoch but its last, a repetition waits until all others of its
/// configuration have come as far or have failed; then they go on, wait or stop together. A configuration whose value
/// is not finite has failed, and its other repetitions stop. `judge` may not copy trials. The result's capacity and
/// planned epochs count trials.
[[nodiscard]] std::unique_ptr<Scheduler> make_repeated(std::unique_ptr<Scheduler> judge,
                                                       const trials::Repetitions& repetitions, trials::Goal goal);

struct RacingOptions {
  int max_epochs = 1;
  int min_epochs = 1;   ///< Epochs that every trial gets before it is judged.
  int confidence = 95;  ///< Percent.
};

/// Racing: after each epoch from min_epochs on, a configuration is compared with the best of those that were drawn
/// before it and have come as far, pair by pair of equal repetitions (equal seed, equal fold). It is stopped if it is
/// worse by signed_rank_p at 1 - confidence. Configurations are judged in the order of their draws; one waits for those
/// before it. A failed repetition counts as infinitely bad; pairs of two failed ones are left out. Throws
/// Error{kConfig} if so few repetitions can never show that much.
[[nodiscard]] std::unique_ptr<Scheduler> make_racing(const RacingOptions& options,
                                                     const trials::Repetitions& repetitions, trials::Goal goal);

/// The fewest repetitions of which all must be worse for a verdict at that confidence: the smallest p-value of n pairs
/// is 2^-n.
[[nodiscard]] int fewest_for_racing(int confidence);

/// A history of trials as one of configurations: what a sampler that draws configurations learns from. A configuration
/// has a value after an epoch once all of its repetitions have one or have failed. It has ended once all of them have:
/// as kFail if its value is not finite, else as kPruned if any was stopped, else as kComplete.
[[nodiscard]] History by_configuration(const History& trials, const trials::Repetitions& repetitions,
                                       trials::Goal goal);

}  // namespace hfta::search
