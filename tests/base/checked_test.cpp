#include "base/checked.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace hfta {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();

TEST_CASE("arithmetic says where it leaves 64 bits") {
  CHECK(checked_add(kMost - 1, 1) == kMost);
  CHECK_FALSE(checked_add(kMost, 1));
  CHECK(checked_sub(-1, kMost) == kLeast);
  CHECK_FALSE(checked_sub(0, kLeast));
  CHECK(checked_mul(std::int64_t{1} << 31, std::int64_t{1} << 31) == std::int64_t{1} << 62);
  CHECK_FALSE(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31));
}

TEST_CASE("there is no int after the last") {
  constexpr int kLast = std::numeric_limits<int>::max();
  CHECK(checked_next(-1) == 0);
  CHECK(checked_next(kLast - 1) == kLast);
  CHECK_FALSE(checked_next(kLast));
}

TEST_CASE("division rounds down, as Python's") {
  CHECK(floor_divide(7, 2) == 3);
  CHECK(floor_divide(-7, 2) == -4);
  CHECK(floor_divide(7, -2) == -4);
  CHECK(floor_remainder(-7, 2) == 1);
  CHECK(floor_remainder(7, -2) == -1);
  CHECK(floor_remainder(kLeast, -1) == 0);
  CHECK_FALSE(floor_divide(1, 0));
  CHECK_FALSE(floor_remainder(1, 0));
  CHECK_FALSE(floor_divide(kLeast, -1));
}

TEST_CASE("powers end where 64 bits do") {
  CHECK(checked_power(3, 4) == 81);
  CHECK(checked_power(-2, 63) == kLeast);
  CHECK(checked_power(0, 0) == 1);
  CHECK(checked_power(-1, kMost) == -1);
  CHECK(checked_power(1, kMost) == 1);
  CHECK_FALSE(checked_power(2, 63));
  CHECK_FALSE(checked_power(10, kMost));
  CHECK_FALSE(checked_power(2, -1));
}

TEST_CASE("a double is an integer or none") {
  CHECK(exact_integer(-3.0) == -3);
  CHECK(exact_integer(-9223372036854775808.0) == kLeast);
  CHECK_FALSE(exact_integer(9223372036854775808.0));
  CHECK_FALSE(exact_integer(0.5));
  CHECK_FALSE(exact_integer(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(exact_integer(-std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace hfta
