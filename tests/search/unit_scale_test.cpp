// Distributions on the scale from 0 to 1.

#include "search/unit_scale.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "search/choices.hpp"
#include "search/space.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta;
using namespace hfta::search;
using namespace hfta::trials::testing;
using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

namespace {

const std::vector<Distribution>& bounded_kinds() {
  static const std::vector<Distribution> all = {
      bounded(DistributionKind::kUniform, -2, 5),
      bounded(DistributionKind::kLogUniform, -7, 2),
      bounded(DistributionKind::kLogUniformValues, 1e-5, 10),
      bounded(DistributionKind::kInvLogUniform, -3, 4),
      bounded(DistributionKind::kInvLogUniformValues, 0.01, 3),
      bounded(DistributionKind::kIntUniform, -3, 11),
      bounded(DistributionKind::kIntUniform, 0, 0x1p40),
      bounded(DistributionKind::kQUniform, 0, 1, 0.3),
      bounded(DistributionKind::kQUniform, 16, 128, 16, true),
      bounded(DistributionKind::kQLogUniform, 0, 5, 3),
      bounded(DistributionKind::kQLogUniformValues, 1, 300, 7, true),
  };
  return all;
}

const std::vector<Distribution>& normals() {
  static const std::vector<Distribution> all = {
      normal(DistributionKind::kNormal, 3, 0.5),
      normal(DistributionKind::kLogNormal, -1, 1),
      normal(DistributionKind::kQNormal, 0, 10, 3),
      normal(DistributionKind::kQLogNormal, 1, 1, 2),
  };
  return all;
}

}  // namespace

TEST_CASE("a value's part of the unit scale gives that value") {
  for (const std::vector<Distribution>* some : {&bounded_kinds(), &normals()}) {
    for (const Distribution& d : *some) {
      INFO(trials::name_of(d.kind));
      const auto scale = UnitScale::of(d);
      REQUIRE(scale);
      for (int i = 0; i < 200; ++i) {
        CountedRandom random(3, Stream::kSample, static_cast<std::uint64_t>(i));
        const ParamValue value = sample(d, random);
        const UnitScale::Part part = scale->part_of(value);
        REQUIRE(part.from >= 0);
        REQUIRE(part.to <= 1);
        REQUIRE(part.from <= part.to);
        const ParamValue again = scale->at(part.middle());
        if (const auto* number = std::get_if<double>(&value); number != nullptr && part.is_point()) {
          if (part.from > 0 && part.to < 1) CHECK(std::get<double>(again) == Approx(*number).epsilon(1e-9));
        } else if (part.from < part.to) {
          CHECK(trials::to_text(again) == trials::to_text(value));
        }
      }
    }
  }
}

TEST_CASE("on the unit scale every bounded distribution is uniform") {
  constexpr int kDraws = 20'000;
  for (const Distribution& d : bounded_kinds()) {
    INFO(trials::name_of(d.kind) << " " << d.min << " " << d.max);
    const auto scale = UnitScale::of(d);
    std::vector<int> tenths(10);
    for (int i = 0; i < kDraws; ++i) {
      CountedRandom random(9, Stream::kSample, static_cast<std::uint64_t>(i)),
          within(9, Stream::kSplit, static_cast<std::uint64_t>(i));
      const UnitScale::Part part = scale->part_of(sample(d, random));
      const double u = part.from + (part.to - part.from) * within.uniform();
      ++tenths[static_cast<std::size_t>(std::min(9.0, std::floor(10 * u)))];
    }
    for (const int count : tenths) CHECK(std::abs(count - kDraws / 10) < 5 * std::sqrt(kDraws * 0.09));
  }
}

TEST_CASE("parts of countable values lie side by side, as wide as they are likely") {
  for (const Distribution& d : bounded_kinds()) {
    const auto choices = Choices::of(d);
    if (!choices || choices->count() > 1000) continue;
    INFO(trials::name_of(d.kind));
    const auto scale = UnitScale::of(d);
    double all = 0, at = 0;
    for (std::int64_t i = 0; i < choices->count(); ++i) all += choices->weight(i);
    for (std::int64_t i = 0; i < choices->count(); ++i) {
      const UnitScale::Part part = scale->part_of(choices->value(i));
      CHECK(part.from == Approx(at).margin(1e-12));
      CHECK(part.to - part.from == Approx(choices->weight(i) / all).epsilon(1e-9));
      at = part.to;
    }
    CHECK(at == Approx(1));
  }
}

TEST_CASE("what has no numbers, or only one, has no unit scale") {
  Distribution words;
  words.kind = DistributionKind::kCategorical;
  words.values = {std::string("a"), std::string("b")};
  CHECK_FALSE(UnitScale::of(words));
  CHECK_FALSE(UnitScale::of(bounded(DistributionKind::kUniform, 2, 2)));
  CHECK_FALSE(UnitScale::of(normal(DistributionKind::kNormal, 2, 0)));
}
