#include "trials/json.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

using namespace hfta;
using namespace hfta::trials;
using nlohmann::json;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
}

TEST_CASE("numbers are read back from JSON text, also those that are not finite, and those of earlier histories") {
  for (const double number : {0.1, -0.0, 1e300, kInf, -kInf}) {
    CHECK(number_from(json::parse(number_json(number).dump())) == number);
  }
  CHECK(std::isnan(number_from(json::parse(number_json(std::nan("")).dump()))));
  CHECK(number_json(kInf).dump() == R"({"float":"inf"})");
  CHECK(number_from("Infinity") == kInf);
  CHECK(number_from("-Infinity") == -kInf);
  CHECK(std::isnan(number_from(nullptr)));
  CHECK_THROWS_AS(number_from("infinite"), json::exception);
  CHECK_THROWS_AS(number_from({{"float", "infinite"}}), Error);
  CHECK_FALSE(non_finite_from(0.5));
  CHECK_FALSE(non_finite_from({{"float", "inf"}, {"more", 1}}));
}

TEST_CASE("parameters and objectives as JSON keep their order and their types") {
  const Params params = {
      {"lr", 1.0}, {"hidden", std::int64_t{1}}, {"act", std::string("relu")}, {"x", {}}, {"b", true}};
  CHECK(values_by_name(params).dump() == R"({"lr":1.0,"hidden":1,"act":"relu","x":null,"b":true})");
  CHECK(objectives_json({{"acc", Goal::kMaximize}, {"size", Goal::kMinimize}}).dump() ==
        R"([{"metric":"acc","direction":"maximize"},{"metric":"size","direction":"minimize"}])");
}
