#pragma once
/// A distribution with finitely many values, as a list that is not written out.

#include <cstdint>
#include <optional>
#include <vector>

#include "trials/space.hpp"

namespace hfta::search {

/// The distribution's values (none unless it is a list) that have a probability above 0.
[[nodiscard]] std::vector<trials::ParamValue> possible_values(const trials::Distribution& distribution);

/// Value type; holds a copy of the distribution. Values are numbered 0..count()-1 in the order of the config
/// (categorical) or ascending.
class Choices {
 public:
  /// nullopt where values are not finitely many. A range of one point (min = max, sigma = 0) is one value. The
  /// distribution must be valid (search::validate).
  [[nodiscard]] static std::optional<Choices> of(const trials::Distribution& distribution);

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Number of values that have a weight above 0.
  [[nodiscard]] std::int64_t possible_count() const;
  /// The i-th value, of the type that search::sample gives.
  [[nodiscard]] trials::ParamValue value(std::int64_t i) const;
  /// Proportional to the probability that search::sample gives value(i); equal for all where that is uniform. May be 0.
  [[nodiscard]] double weight(std::int64_t i) const;

 private:
  Choices(const trials::Distribution& distribution, std::int64_t first, std::int64_t count)
      : distribution_(distribution), first_(first), count_(count) {}

  trials::Distribution distribution_;
  std::int64_t first_;  // the smallest integer, or multiple of q; 0 for lists and points
  std::int64_t count_;
};

}  // namespace hfta::search
