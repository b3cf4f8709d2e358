#pragma once
/// Samplers decide which configurations to try.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/history.hpp"
#include "search/scheduler.hpp"
#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::search {

/// Not thread-safe; owned by the driver.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Parameters of draws first..first+k-1 (0-based count of everything that a sampler ever drew in the study, without
  /// enqueued trials), fewer when the space is exhausted. REQUIRES first and k of at least 0. Deterministic in its
  /// arguments. The result is that of k calls for one draw each, where the history grows after each call by the new
  /// draw, without any value. REQUIRES that `given`, and the parameters in the history, are values of the space.
  /// `given`: values that the draws are to have of some parameters. A sampler that learns chooses the others by what it
  /// knows; where it finds no such configuration that may be drawn, a draw has other values. A sampler that does not
  /// learn pays no heed to them.
  [[nodiscard]] virtual std::vector<trials::Params> ask(int first, int k, const History& history,
                                                        const trials::Params& given) = 0;
  [[nodiscard]] std::vector<trials::Params> ask(int first, int k, const History& history) {
    return ask(first, k, history, {});
  }
  /// Whether ask() reads `history`. If so, trials are drawn only when slots are free, as many as fit; if not, they may
  /// be drawn long before, with an empty history.
  [[nodiscard]] virtual bool learns() const { return false; }
  /// Number of configurations in all; nullopt if unlimited.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// Whether a configuration of a finite space may be drawn again while another was not drawn. kAllowed is for a part of
/// a space, whose few values come in many configurations; the code that joins the parts compares those.
enum class Repeats { kAvoided, kAllowed };

/// Every combination once, the last parameter fastest; probabilities play no part. Throws Error{kConfig} if a parameter
/// has no finite list (search::enumerate), or for 2^63 combinations.
[[nodiscard]] std::unique_ptr<Sampler> make_grid(trials::Space space);

/// Random draws, a function of (seed, draw) alone, independent where the space is infinite. Where it is finite, a
/// configuration is not repeated until all were tried (a repeated one wastes its budget): sampling without replacement,
/// likelier ones sooner. Spaces of up to 2^20 configurations are shuffled, pass after pass; for larger finite ones
/// every draw is kept in memory. size() is nullopt: a further pass can always follow. kAllowed: independent draws
/// always.
[[nodiscard]] std::unique_ptr<Sampler> make_random(trials::Space space, std::uint64_t seed,
                                                   Repeats repeats = Repeats::kAvoided);

/// Scrambled Sobol points, which fill a space more evenly than random draws (search/sampler/sobol_points.hpp), each a
/// function of (seed, draw). Of a finite space no configuration is repeated until all were tried. size() is nullopt.
[[nodiscard]] std::unique_ptr<Sampler> make_sobol(trials::Space space, std::uint64_t seed,
                                                  Repeats repeats = Repeats::kAvoided);

struct TpeOptions {
  int startup_trials = 10;  ///< Sobol points until so many have ended, and half as many were not PRUNED.
  int candidates = 24;
};

/// Tree-structured Parzen estimator (Bergstra et al., NIPS 2011), multivariate, with running trials counted as bad
/// (constant liar), as in Optuna 5 but for Sobol points at first, an eighth of good trials in place of a tenth, and
/// weights that follow ranks, not ages: of `candidates` draws from a density of the best eighth of the trials, at most
/// 25, the one with the highest ratio of this density to a density of all other trials. COMPLETE trials rank before
/// PRUNED ones; of PRUNED trials, those that trained longer rank higher. Failed trials have no value; a ratio of
/// densities of their own keeps draws away from where they are (Watanabe and Hutter, "c-TPE", IJCAI 2023). If there are
/// finitely many configurations, none is drawn twice as long as another is found. This sampler learns.
[[nodiscard]] std::unique_ptr<Sampler> make_tpe(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                                const TpeOptions& options, Repeats repeats = Repeats::kAvoided);

struct GpOptions {
  int startup_trials = 5;  ///< Sobol points until so many trials have ended.
};

/// Bayesian optimization with a Gaussian process (search/sampler/gp/): the configuration of the largest expected
/// improvement over the trials that ended, given all that are running. A pruned trial counts with its value so far, but
/// as no better than the median of COMPLETE ones; a failed one tells where trials fail, and nothing of values
/// (gp/feasibility.hpp). Of thousands of trials the model sees some
/// hundreds (gp/observations.hpp). No configuration is drawn twice as long as another is
/// found. This sampler learns.
[[nodiscard]] std::unique_ptr<Sampler> make_gp(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                               const GpOptions& options, Repeats repeats = Repeats::kAvoided);

struct CmaesOptions {
  int population = 0;  ///< Trials of a generation; 0: 4 + floor(3 ln(parameters)).
};

/// Covariance matrix adaptation (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772) on the unit scale,
/// with the margin of Hamano et al. (GECCO 2022) for steps. Categories are drawn from shares of their own, which move
/// to those of each generation's better half. Trials that ended, in the order of their draws, are the generations, so
/// that trials may end in any order; they rank as in TPE. No configuration is drawn
/// twice as long as another is found. This sampler learns.
[[nodiscard]] std::unique_ptr<Sampler> make_cmaes(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                                  const CmaesOptions& options, Repeats repeats = Repeats::kAvoided);

struct EvolutionOptions {
  int population = 20;  ///< Trials that may be parents, the latest that ended.
  int tournament = 5;   ///< Picks from these, at random, for each draw; the best one is the parent.
};

/// Regularised evolution (Real et al., "Regularized Evolution for Image Classifier Architecture Search", AAAI 2019): of
/// some trials of the population, the best one is the parent, and one parameter of it is changed: a category is drawn
/// anew, a number is moved, or now and then drawn anew. Until a population has ended, Sobol points. Trials rank as in
/// TPE. No configuration is drawn twice as long as another is found. This sampler learns. Throws Error{kConfig} for
/// impossible options.
[[nodiscard]] std::unique_ptr<Sampler> make_evolution(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                                      const EvolutionOptions& options,
                                                      Repeats repeats = Repeats::kAvoided);

struct Nsga2Options {
  int population = 20;  ///< The trials that may be parents: the best of all that are COMPLETE.
};

/// NSGA-II (Deb et al., IEEE TEC 6(2), 2002) for several objectives, without generations, so that an array never waits
/// for the last of one: the population is the best `population` of all COMPLETE trials, by front and then by crowding
/// distance (Durillo et al., "On the Effect of the Steady-State Selection Scheme in Multi-Objective Genetic
/// Algorithms", EMO 2009). A draw is the child of two winners of tournaments between two, by uniform crossover and
/// polynomial mutation. Until there is a population, Sobol points. Failed trials are no parents. No configuration is
/// drawn twice as long as another is found. This sampler learns. `goals`: one per objective.
[[nodiscard]] std::unique_ptr<Sampler> make_nsga2(trials::Space space, std::uint64_t seed,
                                                  const std::vector<trials::Goal>& goals, const Nsga2Options& options,
                                                  Repeats repeats = Repeats::kAvoided);

struct BohbOptions {
  int min_points = 0;       ///< Trials of a budget before a model is made of it, less 2; 0: parameters + 1.
  int top_percent = 15;     ///< Percentage of these trials that count as good.
  int candidates = 64;      ///< Configurations that are weighed for each draw.
  int random_percent = 33;  ///< Percentage of the draws that are random.
};

/// BOHB's sampler (Falkner et al., "BOHB", ICML 2018, section 3.2 and Algorithm 2), for Hyperband's brackets: a density
/// of the good and one of the bad trials, after the largest of `budgets` (epochs) that at least min_points + 2 trials
/// have reached. The good ones are the best top_percent of these, but at least min_points; the bad ones all others, but
/// at least min_points. Of `candidates` draws from the first density the one with the highest ratio of both. The
/// densities' kernels are TPE's, not the paper's. A trial that has failed is among the bad ones. This sampler learns.
[[nodiscard]] std::unique_ptr<Sampler> make_bohb(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                                 const BohbOptions& options, std::vector<int> budgets,
                                                 Repeats repeats = Repeats::kAvoided);

struct DehbOptions {
  int mutation_percent = 50;   ///< F of differential evolution, times 100.
  int crossover_percent = 50;  ///< Cr, times 100.
};

/// DEHB's sampler (Awad, Mallik and Hutter, IJCAI 2021, section 4), for the draws of DehbLayout. The first bracket is
/// random. Every later draw is an offspring: of a target, whose turn it is in the subpopulation of its number of
/// epochs, and of a mutant of three parents (rand/1), by binomial crossover. In a bracket's first rung the parents are
/// of that subpopulation, above of the best of the rung below. Once its value is known it takes its target's place,
/// unless it is worse. A draw whose value is not known yet has no part. Conditions are the sampler's own: a parameter
/// that does not apply is in the middle of its range. `prior`: how many trials of an earlier study histories begin
/// with. This sampler learns.
[[nodiscard]] std::unique_ptr<Sampler> make_dehb(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                                 const DehbOptions& options, const HyperbandOptions& brackets,
                                                 int prior = 0);

/// Freeze-thaw's sampler: the new configurations among the picks of its scheduler (make_freeze_thaw_scheduler()), by
/// the same forecasts. Until startup_trials have shown a value, Sobol points. `splitting`: parameters that trials have
/// to share to train side by side. No configuration is drawn twice as long as another is
/// found. This sampler learns. Throws Error{kConfig} for impossible options.
[[nodiscard]] std::unique_ptr<Sampler> make_freeze_thaw(const trials::Space& space,
                                                        const std::set<std::string>& splitting, std::uint64_t seed,
                                                        trials::Goal goal, const FreezeThawOptions& options,
                                                        Repeats repeats = Repeats::kAvoided);

}  // namespace hfta::search
