#include "trials/pareto.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>

using namespace hfta::trials;

namespace {

const double kNan = std::nan(""), kInf = std::numeric_limits<double>::infinity();
const Objectives kUpDown = {{"accuracy", Goal::kMaximize}, {"size", Goal::kMinimize}};

using Fronts = std::vector<std::vector<std::size_t>>;

Trial trial(int number, State state, const std::vector<double>& values) {
  Trial t;
  t.number = number;
  t.state = state;
  t.values = values;
  return t;
}

// Few distinct numbers, so that many points tie in some objective or in all.
std::vector<Point> chance_points(std::mt19937& random, std::size_t count, std::size_t objectives,
                                 std::size_t distinct) {
  std::vector<Point> points(count, Point(objectives));
  for (Point& point : points) {
    for (double& value : point) value = static_cast<double>(random() % distinct);
  }
  return points;
}

// By the definition: a front is what nothing that is left dominates.
Fronts fronts_by_definition(const std::vector<Point>& points) {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < points.size(); ++i) left.push_back(i);
  Fronts fronts;
  while (!left.empty()) {
    std::vector<std::size_t> front, rest;
    for (const std::size_t i : left) {
      const bool beaten =
          std::any_of(left.begin(), left.end(), [&](std::size_t j) { return dominates(points[j], points[i]); });
      (beaten ? rest : front).push_back(i);
    }
    fronts.push_back(front);
    left = rest;
  }
  return fronts;
}

// Of points with whole coordinates: how many unit cubes below the reference some point dominates.
double cubes(const std::vector<Point>& points, int reference, std::size_t objectives) {
  double count = 0;
  Point corner(objectives, 0);
  for (;;) {
    count += std::any_of(points.begin(), points.end(), [&](const Point& point) {
      return std::equal(point.begin(), point.end(), corner.begin(), [](double a, double b) { return a <= b; });
    });
    std::size_t i = 0;
    while (i < objectives && ++corner[i] == reference) corner[i++] = 0;
    if (i == objectives) return count;
  }
}

}  // namespace

TEST_CASE("a trial is a point in which less is better, if it is COMPLETE with a finite number per objective") {
  CHECK(point_of(trial(0, State::kComplete, {0.9, 100}), kUpDown) == Point{-0.9, 100});
  for (const State state : {State::kRunning, State::kPruned, State::kFail, State::kWaiting}) {
    CHECK_FALSE(point_of(trial(0, state, {0.9, 100}), kUpDown));
  }
  CHECK(point_of(trial(0, State::kComplete, {kInf, 100}), kUpDown) == Point{-kInf, 100});
  const std::vector<std::vector<double>> others = {{}, {0.9}, {0.9, 100, 1}, {kNan, 1}, {0.9, kNan}};
  for (const std::vector<double>& values : others) CHECK_FALSE(point_of(trial(0, State::kComplete, values), kUpDown));
}

TEST_CASE("a point dominates another that is worse somewhere and better nowhere") {
  struct Case {
    Point a, b;
    bool a_dominates, b_dominates;
  };
  const std::vector<Case> cases = {{{1, 1}, {2, 2}, true, false}, {{1, 2}, {2, 1}, false, false},
                                   {{1, 1}, {1, 2}, true, false}, {{1, 1}, {1, 1}, false, false},
                                   {{1}, {2}, true, false},       {{1, 1, 3}, {2, 2, 2}, false, false}};
  for (const Case& c : cases) {
    CHECK(dominates(c.a, c.b) == c.a_dominates);
    CHECK(dominates(c.b, c.a) == c.b_dominates);
  }
}

TEST_CASE("fronts: hand-made ones") {
  CHECK(fronts_of({}).empty());
  // Deb's picture: stairs behind stairs, a point that ties in one objective, a point twice.
  const std::vector<Point> points = {{5, 5}, {1, 4}, {2, 2}, {4, 1}, {2, 3}, {3, 3}, {2, 2}, {5, 1}};
  CHECK(fronts_of(points) == Fronts{{1, 2, 3, 6}, {4, 7}, {5}, {0}});
}

TEST_CASE("fronts are those of the definition") {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t count = random() % 40, objectives = 1 + random() % 4;
    const std::vector<Point> points = chance_points(random, count, objectives, 2 + random() % 12);
    CHECK(fronts_of(points) == fronts_by_definition(points));
  }
}

TEST_CASE("crowding distances: hand-made ones") {
  struct Case {
    std::vector<Point> front;
    std::vector<double> distances;
  };
  const std::vector<Case> cases = {
      {{}, {}},
      {{{1, 2}}, {0}},  // there is no range
      {{{1, 2}, {2, 1}}, {kInf, kInf}},
      // Ranges 8 and 4: (4 - 0) / 8 + (4 - 1) / 4 of the second, (8 - 2) / 8 + (2 - 0) / 4 of the third.
      {{{0, 4}, {2, 2}, {4, 1}, {8, 0}}, {kInf, 1.25, 1.25, kInf}},
      {{{8, 0}, {4, 1}, {0, 4}, {2, 2}}, {kInf, 1.25, kInf, 1.25}},
      {{{0, 7}, {1, 7}, {3, 7}, {4, 7}}, {kInf, 0.75, 0.75, kInf}},  // the second objective tells nothing
      {{{-1.7e308, 1.7e308}, {0, 0}, {1.7e308, -1.7e308}}, {kInf, 2, kInf}},
      {{{-kInf, 5}, {0, 4}, {1, 0}}, {kInf, 2, kInf}},
  };
  for (const Case& c : cases) CHECK(crowding_distances(c.front) == c.distances);
}

TEST_CASE("hypervolume: hand-made ones") {
  struct Case {
    std::vector<Point> points;
    Point reference;
    double volume;
  };
  const std::vector<Case> cases = {
      {{}, {1, 1}, 0},
      {{{0, 0}}, {2, 3}, 6},
      {{{2, 0}, {0, 3}, {5, 5}}, {2, 3}, 0},                  // none is better in both
      {{{1, 3}, {2, 2}, {3, 1}}, {4, 4}, 6},                  // stairs
      {{{3, 1}, {1, 3}, {2, 2}, {3, 3}, {2, 2}}, {4, 4}, 6},  // one dominated, one twice
      {{{-3, -1}}, {-1, 0.5}, 3},
      {{{7}, {3}, {5}}, {10}, 7},
      {{{0, 0, 0}}, {1, 2, 3}, 6},
      {{{0, 0, 1}, {1, 1, 0}}, {2, 2, 2}, 5},           // 4 and 2, of which 1 is common
      {{{0, 1, 1, 1}, {1, 0, 0, 0}}, {2, 2, 2, 2}, 9},  // 2 and 8, of which 1 is common
  };
  for (const Case& c : cases) CHECK(hypervolume(c.points, c.reference) == c.volume);
}

TEST_CASE("hypervolume is the number of unit cubes, where coordinates are whole") {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const std::size_t count = random() % 12, objectives = 1 + random() % 4;
    const std::vector<Point> points = chance_points(random, count, objectives, 7);
    CHECK(hypervolume(points, Point(objectives, 6)) == cubes(points, 6, objectives));
  }
}

TEST_CASE("a Pareto front is the same in whatever order its trials come, and those that leave it stay away") {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const std::vector<Point> points = chance_points(random, 25, 2, 8);
    std::vector<int> order(points.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<int>(j);
    std::shuffle(order.begin(), order.end(), random);
    ParetoFront front;
    std::map<int, int> left;
    for (const int number : order) {
      for (const int gone : front.add(number, points[static_cast<std::size_t>(number)])) ++left[gone];
    }
    std::vector<int> wanted;
    const Fronts fronts = fronts_of(points);
    for (const std::size_t member : fronts.front()) wanted.push_back(static_cast<int>(member));
    CHECK(front.numbers() == wanted);
    CHECK(front.size() + left.size() == points.size());
    for (const auto& [number, times] : left) {
      CHECK(times == 1);
      CHECK_FALSE(front.contains(number));
    }
  }
}

TEST_CASE("the best trials are one of one objective, and the Pareto front of several") {
  const std::vector<Trial> trials = {trial(0, State::kComplete, {0.9, 500}), trial(1, State::kComplete, {0.8, 100}),
                                     trial(2, State::kComplete, {0.8, 200}), trial(3, State::kPruned, {0.99, 1}),
                                     trial(4, State::kComplete, {0.9, 500})};
  const auto numbers = [&](const Objectives& objectives, const std::vector<Trial>& all) {
    std::vector<int> found;
    for (const Trial* one : best_of(all, objectives)) found.push_back(one->number);
    return found;
  };
  CHECK(numbers(kUpDown, trials) == std::vector<int>{0, 1, 4});
  CHECK(pareto_front(trials, kUpDown).numbers() == std::vector<int>{0, 1, 4});
  CHECK(numbers({{"accuracy", Goal::kMaximize}}, trials) == std::vector<int>{0});
  CHECK(numbers(kUpDown, {}).empty());
}
