#include "engine/simulate/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/number_text.hpp"
#include "search/completion.hpp"

namespace hfta::engine {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr double kForeign = -1;  // a word that the list does not have

trials::ParamValue parsed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = parse_number<std::int64_t>(text)) return *integer;
  if (const auto number = parse_number<double>(text)) return *number;
  return text;
}

}  // namespace

NearestConfiguration::NearestConfiguration(const trials::Space& space) {
  for (const trials::Parameter& parameter : space) {
    axes_.push_back({parameter.name, parameter.distribution, search::UnitScale::of(parameter.distribution)});
  }
}

double NearestConfiguration::place_of(const Axis& axis, const trials::ParamValue& value) const {
  if (axis.scale) return axis.scale->part_of(value).middle();
  const auto& values = axis.distribution.values;
  const auto own = search::admit(axis.distribution, value);
  if (!own) return kForeign;
  // A range of one point has no list.
  return static_cast<double>(std::find(values.begin(), values.end(), *own) - values.begin());
}

void NearestConfiguration::add(const std::map<std::string, std::string>& configuration) {
  Point& point = points_.emplace_back();
  for (const Axis& axis : axes_) {
    const auto found = configuration.find(axis.name);
    if (found == configuration.end() || found->second.empty()) {
      point.push_back(kAbsent);
      continue;
    }
    const double place = place_of(axis, parsed(found->second));
    point.push_back(place == kForeign ? place_of(axis, found->second) : place);  // a list may have the word "1"
  }
}

double NearestConfiguration::squared_distance(const Point& a, const Point& b) const {
  double sum = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      sum += std::isnan(a[i]) == std::isnan(b[i]) ? 0 : 1;
    } else if (axes_[i].scale) {
      sum += (a[i] - b[i]) * (a[i] - b[i]);
    } else {
      sum += a[i] == b[i] ? 0 : 1;
    }
  }
  return sum;
}

std::size_t NearestConfiguration::to(const trials::Params& params) const {
  Point wanted;
  for (const Axis& axis : axes_) {
    const auto found =
        std::find_if(params.begin(), params.end(), [&](const auto& one) { return one.first == axis.name; });
    wanted.push_back(found == params.end() ? kAbsent : place_of(axis, found->second));
  }
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double distance = squared_distance(wanted, points_[i]);
    if (distance >= least) continue;
    nearest = i;
    least = distance;
  }
  return nearest;
}

}  // namespace hfta::engine
