#include "trials/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hfta::trials {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

using Points = std::vector<Point>;

// The hypervolume for two objectives: points sorted by the first one form stairs, which are added up step by step.
double area(Points points, const Point& reference) {
  std::sort(points.begin(), points.end());
  double sum = 0, lowest = reference[1];
  for (const Point& point : points) {
    if (point[1] >= lowest) continue;  // dominated
    sum += (reference[0] - point[0]) * (lowest - point[1]);
    lowest = point[1];
  }
  return sum;
}

double length(const Points& points, const Point& reference) {
  double best = reference[0];
  for (const Point& point : points) best = std::min(best, point[0]);
  return reference[0] - best;
}

// Adds a point unless another one is as good, and removes those that are no better than it.
void add_to_front(Points& front, Point point) {
  const auto covers = [](const Point& a, const Point& b) { return a == b || dominates(a, b); };
  if (std::any_of(front.begin(), front.end(), [&](const Point& other) { return covers(other, point); })) return;
  std::erase_if(front, [&](const Point& other) { return covers(point, other); });
  front.push_back(std::move(point));
}

// The hypervolume, slice by slice: between two neighbouring values of the last objective the dominated part is a prism.
// Its base is what the points up to there dominate in the other objectives.
double volume(Points points, const Point& reference) {
  const std::size_t last = reference.size() - 1;
  if (last == 0) return length(points, reference);
  if (last == 1) return area(std::move(points), reference);
  std::sort(points.begin(), points.end(), [last](const Point& a, const Point& b) { return a[last] < b[last]; });
  const Point below(reference.begin(), reference.end() - 1);
  Points base;
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    add_to_front(base, Point(points[i].begin(), points[i].end() - 1));
    const double top = i + 1 < points.size() ? points[i + 1][last] : reference[last];
    if (top > points[i][last]) sum += (top - points[i][last]) * volume(base, below);
  }
  return sum;
}

}  // namespace

std::optional<Point> point_of(std::vector<double> values, const Objectives& objectives) {
  if (values.size() != objectives.size()) return std::nullopt;
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) return std::nullopt;
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].goal == Goal::kMaximize) values[i] = -values[i];
  }
  return values;
}

std::optional<Point> point_of(const Trial& trial, const Objectives& objectives) {
  return trial.state == State::kComplete && trial.feasible ? point_of(trial.values, objectives) : std::nullopt;
}

bool dominates(const Point& a, const Point& b) {
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    is_better |= a[i] < b[i];
  }
  return is_better;
}

// In lexicographic order a point is dominated only by points before it. A front with a point that dominates it comes
// only after fronts that have one too, since what dominates is transitive. So its own front is found by bisection.
std::vector<std::vector<std::size_t>> fronts_of(const std::vector<Point>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::vector<std::size_t>> fronts;
  for (const std::size_t one : order) {
    const auto place = std::partition_point(fronts.begin(), fronts.end(), [&](const std::vector<std::size_t>& front) {
      return std::any_of(front.rbegin(), front.rend(),
                         [&](std::size_t other) { return dominates(points[other], points[one]); });
    });
    if (place == fronts.end()) {
      fronts.push_back({one});
    } else {
      place->push_back(one);
    }
  }
  for (std::vector<std::size_t>& front : fronts) std::sort(front.begin(), front.end());
  return fronts;
}

std::vector<double> crowding_distances(const std::vector<Point>& front) {
  std::vector<double> distances(front.size(), 0);
  if (front.empty()) return distances;
  std::vector<std::size_t> order(front.size());
  for (std::size_t objective = 0; objective < front.front().size(); ++objective) {
    const auto half = [&](std::size_t i) {  // so that no difference overflows
      return std::clamp(front[order[i]][objective], -kLargest, kLargest) / 2;
    };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return front[a][objective] < front[b][objective]; });
    const double range = half(order.size() - 1) - half(0);
    if (!(range > 0)) continue;
    distances[order.front()] = distances[order.back()] = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i + 1 < order.size(); ++i) distances[order[i]] += (half(i + 1) - half(i - 1)) / range;
  }
  return distances;
}

double hypervolume(std::vector<Point> points, const Point& reference) {
  std::erase_if(points, [&](const Point& point) {
    return !std::equal(point.begin(), point.end(), reference.begin(), [](double a, double b) { return a < b; });
  });
  if (points.empty()) return 0;
  return volume(std::move(points), reference);
}

std::vector<int> ParetoFront::add(int number, Point point) {
  const auto beaten = [&](const Member& other) { return dominates(other.point, point); };
  if (std::any_of(members_.begin(), members_.end(), beaten)) return {number};
  std::vector<int> gone;
  std::erase_if(members_, [&](const Member& other) {
    if (!dominates(point, other.point)) return false;
    gone.push_back(other.number);
    return true;
  });
  const auto place =
      std::find_if(members_.begin(), members_.end(), [number](const Member& other) { return other.number > number; });
  members_.insert(place, {number, std::move(point)});
  return gone;
}

bool ParetoFront::contains(int number) const {
  return std::any_of(members_.begin(), members_.end(), [number](const Member& one) { return one.number == number; });
}

std::vector<int> ParetoFront::numbers() const {
  std::vector<int> numbers;
  for (const Member& member : members_) numbers.push_back(member.number);
  return numbers;
}

ParetoFront pareto_front(const std::vector<Trial>& trials, const Objectives& objectives) {
  ParetoFront front;
  for (const Trial& trial : trials) {
    if (std::optional<Point> point = point_of(trial, objectives)) (void)front.add(trial.number, std::move(*point));
  }
  return front;
}

std::vector<const Trial*> best_of(const std::vector<Trial>& trials, const Objectives& objectives) {
  std::vector<const Trial*> best;
  if (objectives.size() == 1) {
    if (const Trial* one = best_of(trials, objectives.front().goal)) best.push_back(one);
    return best;
  }
  const ParetoFront front = pareto_front(trials, objectives);
  for (const Trial& trial : trials) {
    if (front.contains(trial.number)) best.push_back(&trial);
  }
  return best;
}

}  // namespace hfta::trials
