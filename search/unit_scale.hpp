#pragma once
/// A distribution's numbers on the scale from 0 to 1 on which a model of the search sees them.
///
/// Bounded kinds: the fraction of the probability below, so that a uniform draw on the scale is a draw of the
/// distribution. Normal kinds: linear in standard deviations, from -4 to 4; what lies beyond is put at the ends.

#include <optional>

#include "trials/space.hpp"

namespace hfta::search {

/// Value type; holds a copy of the distribution, which must be valid, numeric and have more than one value.
class UnitScale {
 public:
  /// nullopt for constant and categorical, and where there is only one value.
  [[nodiscard]] static std::optional<UnitScale> of(const trials::Distribution& distribution);

  /// The value at `u`, which is put between 0 and 1.
  [[nodiscard]] trials::ParamValue at(double u) const;

  /// The part of the scale where at() gives a value: `from` to `to` for an integer or a multiple of q, else one point.
  struct Part {
    double from = 0, to = 0;
    [[nodiscard]] bool is_point() const { return from == to; }
    [[nodiscard]] double middle() const { return (from + to) / 2; }
  };
  /// A word counts as the middle of the scale.
  [[nodiscard]] Part part_of(const trials::ParamValue& value) const;

 private:
  explicit UnitScale(const trials::Distribution& distribution) : distribution_(distribution) {}
  [[nodiscard]] double fraction(double value) const;

  trials::Distribution distribution_;
};

}  // namespace hfta::search
