#include "engine/config/scalar.hpp"

#include <catch2/catch.hpp>
#include <clocale>
#include <cmath>
#include <limits>

namespace hfta::engine::configuration {
namespace {

using trials::ParamValue;

void check_scalars() {
  const auto integer = [](std::int64_t i) { return ParamValue(i); };
  const std::vector<std::pair<std::string, ParamValue>> cases = {
      {"", {}},
      {"~", {}},
      {"null", {}},
      {"Null", {}},
      {"NULL", {}},
      {"nUll", std::string("nUll")},
      {"true", true},
      {"True", true},
      {"FALSE", false},
      {"tRue", std::string("tRue")},
      {"y", std::string("y")},
      {"n", std::string("n")},
      {"on", std::string("on")},
      {"Yes", std::string("Yes")},
      {"0", integer(0)},
      {"-0", integer(0)},
      {"+7", integer(7)},
      {"007", integer(7)},
      {"-12", integer(-12)},
      {"0x1F", integer(31)},
      {"0o17", integer(15)},
      {"-0x1", std::string("-0x1")},
      {"0b1", std::string("0b1")},
      {"0x", std::string("0x")},
      {"0o8", std::string("0o8")},
      {"9223372036854775807", integer(std::numeric_limits<std::int64_t>::max())},
      {"-9223372036854775808", integer(std::numeric_limits<std::int64_t>::min())},
      {"9223372036854775808", 9223372036854775808.0},
      {"1e-4", 1e-4},
      {"1E+2", 100.0},
      {"1.", 1.0},
      {".5", 0.5},
      {"-1.5e3", -1500.0},
      {"+.5", 0.5},
      {"-0.0", 0.0},
      {"1,5", std::string("1,5")},
      {"1_000", std::string("1_000")},
      {"1e", std::string("1e")},
      {".", std::string(".")},
      {"-", std::string("-")},
      {"+", std::string("+")},
      {"1e+", std::string("1e+")},
      {"--1", std::string("--1")},
      {"0.1.2", std::string("0.1.2")},
      {"inf", std::string("inf")},
      {"nan", std::string("nan")},
      {".inf", std::numeric_limits<double>::infinity()},
      {"-.Inf", -std::numeric_limits<double>::infinity()},
      {"1:30", std::string("1:30")},
      {"2024-01-01", std::string("2024-01-01")},
      {"1e5x", std::string("1e5x")}};
  for (const auto& [text, value] : cases) {
    INFO("'" << text << "'");
    CHECK(resolve(text).value == value);
    CHECK_FALSE(resolve(text).out_of_range);
  }
  CHECK(std::isnan(std::get<double>(resolve(".NaN").value)));
  CHECK_FALSE(std::signbit(std::get<double>(resolve("-0.0").value)));
  for (const char* text : {"1e400", "-1e400", "1e-400", "0xFFFFFFFFFFFFFFFFF"}) CHECK(resolve(text).out_of_range);
}

TEST_CASE("scalars mean what YAML 1.2's core schema says") { check_scalars(); }

TEST_CASE("scalars do not depend on the locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool any = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8"}) {
    any = std::setlocale(LC_ALL, name) != nullptr || any;
    check_scalars();
  }
  std::setlocale(LC_ALL, before.c_str());
  CHECK(any);
}

}  // namespace
}  // namespace hfta::engine::configuration
