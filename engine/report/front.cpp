#include "engine/report/front.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "base/number_text.hpp"
#include "base/text.hpp"
#include "engine/report/words.hpp"
#include "trials/pareto.hpp"

namespace hfta::engine {
namespace {

using trials::Point;
using trials::Trial;

// Turns a point's numbers into values of the metrics, and back.
std::vector<double> turned(std::vector<double> values, const trials::Objectives& objectives) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (objectives[i].goal == trials::Goal::kMaximize) values[i] = -values[i];
  }
  return values;
}

// The worst finite value of each objective; where there is none, one that no point is better than.
Point worst_of(const ReportInput& input) {
  constexpr double kBest = -std::numeric_limits<double>::infinity();
  Point worst(input.objectives.size(), kBest);
  for (const Trial& trial : input.trials) {
    const std::optional<Point> point = trials::point_of(trial, input.objectives);
    if (!point) continue;
    for (std::size_t i = 0; i < worst.size(); ++i) {
      if (std::isfinite((*point)[i])) worst[i] = std::max(worst[i], (*point)[i]);
    }
  }
  return worst;
}

}  // namespace

std::vector<std::optional<FrontPlace>> front_places(const std::vector<Trial>& trials,
                                                    const trials::Objectives& objectives) {
  std::vector<std::optional<FrontPlace>> places(trials.size());
  std::vector<Point> points;
  std::vector<std::size_t> of;  // the trial of each point
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (auto point = trials::point_of(trials[i], objectives)) {
      points.push_back(std::move(*point));
      of.push_back(i);
    }
  }
  int front = 0;
  for (const std::vector<std::size_t>& members : trials::fronts_of(points)) {
    std::vector<Point> those;
    those.reserve(members.size());
    for (const std::size_t member : members) those.push_back(points[member]);
    const std::vector<double> distances = trials::crowding_distances(those);
    for (std::size_t i = 0; i < members.size(); ++i) places[of[members[i]]] = FrontPlace{front, distances[i]};
    ++front;
  }
  return places;
}

std::map<int, int> fronts_by_number(const ReportInput& input) {
  std::map<int, int> fronts;
  if (input.objectives.size() < 2) return fronts;
  const std::vector<std::optional<FrontPlace>> places = front_places(input.trials, input.objectives);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i]) fronts[input.trials[i].number] = places[i]->front;
  }
  return fronts;
}

std::optional<FrontSummary> front_of(const ReportInput& input) {
  if (input.objectives.size() < 2) return std::nullopt;
  FrontSummary summary;
  summary.trials = trials::best_of(input.trials, input.objectives);
  if (summary.trials.empty()) return std::nullopt;
  std::vector<Point> points;
  for (const Trial* trial : summary.trials) points.push_back(*trials::point_of(*trial, input.objectives));
  const Point reference = input.reference ? turned(*input.reference, input.objectives) : worst_of(input);
  summary.hypervolume = trials::hypervolume(points, reference);
  summary.reference = turned(reference, input.objectives);
  return summary;
}

std::string front_text(const ReportInput& input) {
  if (input.objectives.size() < 2) return "";
  const std::optional<FrontSummary> front = front_of(input);
  if (!front) return fmt::format("Pareto front: none, {}\n", trials::why_none_is_best(input.trials));
  std::vector<std::string> reference;
  for (std::size_t i = 0; i < front->reference.size(); ++i) {
    reference.push_back(fmt::format("{} {}", printable(input.objectives[i].metric), value_text(front->reference[i])));
  }
  return fmt::format("Pareto front: {}, hypervolume {} (reference: {})\n",
                     counted(front->trials.size(), "trial", "trials"), value_text(front->hypervolume), join(reference));
}

std::vector<double> reference_from(const std::string& text, const trials::Objectives& objectives) {
  std::vector<double> reference;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::optional<double> number = parse_number<double>(word);
    if (!number || !std::isfinite(*number)) {
      throw Error(ErrorKind::kConfig, fmt::format("--reference: found '{}', wanted a number", excerpt(word)));
    }
    reference.push_back(*number);
  }
  if (objectives.size() > 1 && reference.size() == objectives.size()) return reference;
  throw Error(ErrorKind::kConfig,
              objectives.size() > 1 ? fmt::format("--reference: found {}, wanted {}, one per objective: A,B",
                                                  counted(reference.size(), "number", "numbers"), objectives.size())
                                    : "--reference: found it for a study of one objective, wanted a study of several");
}

}  // namespace hfta::engine
