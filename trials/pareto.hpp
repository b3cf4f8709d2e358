#pragma once
/// Trials of several objectives: which are better than which, and how good a set of them is.
///
/// A point has one number per objective, all to be minimised (see point_of()). A point dominates another if it is no
/// worse in any objective and better in one. Equal points do not dominate each other.

#include <cstddef>
#include <optional>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::trials {

using Point = std::vector<double>;

/// The values as a point: those to be maximised change their sign. nullopt unless there is one per objective, and none
/// is NaN.
[[nodiscard]] std::optional<Point> point_of(std::vector<double> values, const Objectives& objectives);
/// The point of a COMPLETE trial; nullopt for any other trial.
[[nodiscard]] std::optional<Point> point_of(const Trial& trial, const Objectives& objectives);

[[nodiscard]] bool dominates(const Point& a, const Point& b);

/// The fronts of Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC 6(2), 2002,
/// section III-A, as indices: no point dominates those of the first; those of the next are dominated only by points of
/// earlier fronts, and so on. Ascending within a front. Found as in Zhang et al., "An Efficient Approach to
/// Nondominated Sorting for Evolutionary Multiobjective Optimization", IEEE TEC 19(2), 2015 (ENS-BS).
[[nodiscard]] std::vector<std::vector<std::size_t>> fronts_of(const std::vector<Point>& points);

/// The crowding distance of each point of a front (the same paper, section III-B): the sum over the objectives of the
/// distance between its two neighbours, divided by the front's range; infinite for the ends of any objective. An
/// objective in which all are equal counts nothing, and an infinite value as the largest finite one. Points that are
/// equal in an objective are taken in their order.
[[nodiscard]] std::vector<double> crowding_distances(const std::vector<Point>& front);

/// The volume of what at least one of `points` dominates and what itself dominates `reference`; 0 without points.
/// Points that are not better than the reference in every objective count nothing. Exact: by slices along the last
/// objective, as in While et al., "A Faster Algorithm for Calculating Hypervolume", IEEE TEC 10(1), 2006, section III.
/// For n points of d objectives it takes time O(n log n) if d is 2, and at most O(n^(d-1) log n) if d is more.
[[nodiscard]] double hypervolume(std::vector<Point> points, const Point& reference);

/// The trials that no other one dominates; trials are added one by one. Not thread-safe.
class ParetoFront {
 public:
  /// A trial that came before may be dominated now; it then is in the front no more, and never again. Returns the
  /// numbers of those trials, or its own where another one dominates it.
  std::vector<int> add(int number, Point point);
  [[nodiscard]] bool contains(int number) const;
  /// The numbers of the trials in the front, ascending.
  [[nodiscard]] std::vector<int> numbers() const;
  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  struct Member {
    int number;
    Point point;
  };
  std::vector<Member> members_;  ///< Ascending by number.
};

/// The Pareto front of a study: of all trials that have a point (point_of), whatever their order.
[[nodiscard]] ParetoFront pareto_front(const std::vector<Trial>& trials, const Objectives& objectives);

/// The best COMPLETE trials, in the order of `trials`: a single one for one objective (best_of() in trials/trial.hpp),
/// the Pareto front for several. Empty if there is none.
[[nodiscard]] std::vector<const Trial*> best_of(const std::vector<Trial>& trials, const Objectives& objectives);

}  // namespace hfta::trials
