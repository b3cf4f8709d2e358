#pragma once
/// Schedulers decide how long each trial trains.
///
/// Decisions depend on which (trial, epoch, value) are known, never on the order or the time they came in, so that a
/// study's result does not depend on widths, devices or interruptions.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/history.hpp"
#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::search {

/// The next step of a trial.
enum class Decision {
  kContinue,  ///< Goes on training.
  kPause,     ///< Waits, its state kept, until a verdict is taken on it.
  kStop,      ///< Ends here: PRUNED.
  kComplete,  ///< Has had all its epochs: COMPLETE.
};

/// The trial whose state a trial continues from, and the parameters that it continues with.
struct CopyOf {
  int source = 0;         ///< Another trial, which has paused after as many epochs and has not failed.
  trials::Params params;  ///< They may differ from the source's only where an array's slots may.
};

/// A decision on a trial that was paused.
struct Verdict {
  int trial = 0;
  /// kContinue or kStop; or kPause, on a trial that was told to go on and is in no slot yet: it waits again. One that
  /// is in a slot hears of it after its next epoch.
  Decision decision = Decision::kContinue;
  /// The copy to continue from (kContinue only); the trial discards its own state. Verdicts that fall due together are
  /// applied together: a source's state is the one that the source paused with, whatever its own verdict.
  std::optional<CopyOf> copy = std::nullopt;
};

/// Not thread-safe; owned by the driver. Trials are identified by their draw (0-based).
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// The parameters that a trial was drawn with; called before anything is reported of it. Called again for the same
  /// draw (another trial has taken its place), the later parameters replace the earlier ones.
  virtual void enter(int /*trial*/, const trials::Params& /*params*/) {}
  /// The number of trials that the scheduler uses in all; nullopt: no limit of its own.
  [[nodiscard]] virtual std::optional<int> capacity() const = 0;
  /// The epoch up to which the trial may train before its next decision (its rung, or its last epoch).
  [[nodiscard]] virtual int target(int trial) const = 0;
  /// The most epochs any trial gets.
  [[nodiscard]] virtual int max_epochs() const = 0;
  /// Called after each epoch (1-based) of a trial. A non-finite value means that the trial has failed: the result is
  /// kStop, and the trial counts as started but never ranks. Reports may come in any order, even before the verdict
  /// that they depend on (when a store is read again trial by trial; the result is then kPause). A repeated report
  /// changes nothing. Throws Error{kInternal} for an impossible trial or epoch, and for two values of one rung.
  [[nodiscard]] virtual Decision report(int trial, int epoch, double value) = 0;
  /// The trial failed for a reason that has no value (out of memory, ...). Values reported before still rank, so that
  /// verdicts on others do not depend on when it failed. No effect on a trial that has ended.
  virtual void fail(int trial) = 0;
  /// Verdicts on paused trials, and on those told to go on, that have fallen due since the last call, in order of
  /// trial; none on failed ones.
  [[nodiscard]] virtual std::vector<Verdict> take_verdicts() = 0;
  /// Trial-epochs that `trials` more draws, starting with draw `first`, would cost if none fails; for progress and
  /// plan. A bracket that these draws fill only in part costs its share. Draws beyond capacity cost nothing.
  [[nodiscard]] virtual std::int64_t planned_epochs(int first, int trials) const = 0;
};

/// Every trial trains `epochs` epochs.
[[nodiscard]] std::unique_ptr<Scheduler> make_full(int epochs);

/// One rung of a bracket: `trials` trials train to `epochs` epochs in all.
struct Rung {
  int trials = 0;
  int epochs = 0;
  bool operator==(const Rung&) const = default;
};

struct HyperbandOptions {
  int min_epochs = 1;
  int max_epochs = 27;
  int eta = 3;
};

struct PbtOptions {
  int population = 16;   ///< Trials that train side by side.
  int interval = 1;      ///< Epochs from one judgement to the next.
  int max_epochs = 100;  ///< Epochs of every trial.
  int truncation = 25;   ///< Percent: this share, the worst, continue from copies of as many best; at most 50.
  int resample = 25;     ///< Percent: the probability that a copied parameter is drawn anew rather than perturbed.
};

struct FreezeThawOptions {
  int max_epochs = 27;
  int startup_trials = 10;  ///< New trials alone begin until so many have shown a value.
  int slots = 0;            ///< Trials that train side by side, new ones included; 0: as many as the study has slots.
  int eta = 3;              ///< A stage of training has eta times the epochs of the one before.
  int random_percent = 50;  ///< Percentage of the new configurations that are Sobol points, whatever they promise.
};

/// The brackets of one pass, most exploratory first. Form (a), Algorithm 1 of Li et al., "Hyperband", JMLR 2018
/// (arXiv 1603.06560): n = ceil((s_max+1)/(s+1) * eta^s), n_i = floor(n * eta^-i), r_i = max_epochs * eta^(i-s),
/// s_max the largest s with min_epochs * eta^s <= max_epochs. Integer arithmetic throughout; r_i rounds down. Throws
/// Error{kConfig} unless 1 <= min_epochs <= max_epochs and eta >= 2.
[[nodiscard]] std::vector<std::vector<Rung>> hyperband_brackets(const HyperbandOptions& options);

/// Successive halving in each of Hyperband's brackets; promoted trials resume from their state. Draws fill brackets in
/// order, pass after pass, until `run_caps.back()` trials were drawn; a bracket that a cap cuts short begins with the
/// trials that are left. `run_caps`: every cap the study ever had, ascending (a raised cap begins the next bracket; the
/// bracket that was cut stays so). Empty: one pass. A rung keeps the best floor(started * eta^-i), ties to the lower
/// trial, at most the finite. If that is 0 (a bracket cut to fewer than eta^s trials), it keeps the best one: every
/// bracket completes a trial, unless all trials that a rung kept fail. All verdicts on a rung fall due together, when
/// each of its trials has reported or failed. Throws Error{kConfig} for impossible options or caps.
[[nodiscard]] std::unique_ptr<Scheduler> make_hyperband(const HyperbandOptions& options, trials::Goal goal,
                                                        std::vector<int> run_caps);

/// DEHB's budgets (search/dehb_layout.hpp): the first pass is Hyperband's; every later trial ends after the epochs of
/// its rung, PRUNED unless these are max_epochs, and waits for nobody. `run_caps` as for make_hyperband(); empty: one
/// pass.
[[nodiscard]] std::unique_ptr<Scheduler> make_dehb_scheduler(const HyperbandOptions& options, trials::Goal goal,
                                                             const std::vector<int>& run_caps);

/// Freeze-thaw (Swersky, Snoek and Adams, "Freeze-Thaw Bayesian Optimization", arXiv 1406.3896, 2014; with a Gaussian
/// process over configurations and epochs as in Wistuba, Kadra and Grabocka, "Supervising the Multi-Fidelity Race of
/// Hyperparameter Configurations", NeurIPS 2022): every trial pauses after every epoch, and the slots go to the trials
/// that promise most, new ones included. A trial promises the expected improvement of its last epoch's value y,
///
///     E[max(0, y* - y)],  y ~ N(mean, variance),
///
/// over the best value y* known so far, both without noise, by a process over learning curves
/// (freeze_thaw/curve_kernel.hpp). Every other slot goes to the trial that promises most for each epoch it has left.
/// The slots between are dealt in turn to new trials and to those in each stage of training, of less than eta epochs,
/// than eta^2, and so on, as in asynchronous Hyperband (Li et al., 2020), where from eta epochs on the best value so
/// far decides: freeze_thaw/dealer.hpp. A part of the new configurations go through a Sobol sequence. A new one counts
/// as known once picked, at what is expected of it, so that those picked together differ. Where devices train only
/// trials side by side that share `splitting` parameters, all picks share those of one pick, chosen by chance. Who goes
/// on is a function of the known values alone: kPause verdicts take back what has not begun. Nobody is stopped; with a
/// run_cap every trial trains to its end. `prior`: trials of an earlier study. `slots`: how many trials train side by
/// side, asked whenever slots are dealt, unless the options say it; 8 where neither does. The same values and slots
/// give the same verdicts. Throws Error{kConfig} for impossible options.
[[nodiscard]] std::unique_ptr<Scheduler> make_freeze_thaw_scheduler(
    const trials::Space& space, const std::set<std::string>& splitting, std::uint64_t seed, trials::Goal goal,
    const FreezeThawOptions& options, History prior, const std::vector<int>& run_caps, std::function<int()> slots = {});

/// Population based training (Jaderberg et al., arXiv 1711.09846), by truncation. Every `interval` epochs a population
/// waits until all of its trials have reached that epoch. n of them have not failed; the worst floor(n * truncation /
/// 100) of these, ties to the lower trial, each continue from a copy of one of as many best trials, chosen at random,
/// with that trial's parameters explored: each is drawn anew from its distribution (resample percent), or multiplied by
/// 0.8 or 1.2 and moved back to one of its values (of a list: the neighbour below or above). Parameters named in
/// `fixed` are copied unchanged. The choices and draws are a function of (seed, trial, epoch). Draws fill populations
/// in order; those between two of `run_caps` (every cap the study ever had, ascending; empty: one population) are
/// independent of all others. Throws Error{kConfig} for impossible options.
[[nodiscard]] std::unique_ptr<Scheduler> make_pbt(const PbtOptions& options, trials::Goal goal, trials::Space space,
                                                  std::set<std::string> fixed, std::uint64_t seed,
                                                  std::vector<int> run_caps);

}  // namespace hfta::search
