#pragma once
/// The recorded configuration that is most like a given one.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/unit_scale.hpp"
#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Configurations of a space, and the Euclidean distance on its unit scale (search/unit_scale.hpp): a numeric parameter
/// counts by the difference of its places on the scale, any other by 0 if equal and 1 if not, and one that only one of
/// the two configurations has, by 1. Numbers beyond a parameter's range count as its ends. Thread-safe once filled.
class NearestConfiguration {
 public:
  /// The distributions must be valid.
  explicit NearestConfiguration(const trials::Space& space);

  /// Adds a configuration as text: by parameter a number or word; "" or none where it does not have the parameter.
  void add(const std::map<std::string, std::string>& configuration);
  /// The index (by order of add(), from 0) of the configuration nearest to `params`; of several, the first.
  /// REQUIRES that one was added.
  [[nodiscard]] std::size_t to(const trials::Params& params) const;

 private:
  struct Axis {
    std::string name;
    trials::Distribution distribution;
    std::optional<search::UnitScale> scale;  ///< Unset: values are equal or not.
  };
  using Point = std::vector<double>;  ///< [axes]: a place on the scale, the value's index in the list, or NaN for none

  [[nodiscard]] double place_of(const Axis& axis, const trials::ParamValue& value) const;
  [[nodiscard]] double squared_distance(const Point& a, const Point& b) const;

  std::vector<Axis> axes_;
  std::vector<Point> points_;
};

}  // namespace hfta::engine
