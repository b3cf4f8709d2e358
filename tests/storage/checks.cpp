#include "tests/storage/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace hfta::storage::testing {
namespace {

using trials::ParamValue;

std::uint64_t bits(double value) {
  std::uint64_t out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

bool same_number(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

bool same_value(const ParamValue& a, const ParamValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* number = std::get_if<double>(&a)) return bits(*number) == bits(std::get<double>(b));
  return a == b;
}

bool same_metrics(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && same_number(x.second, y.second);
         });
}

void check_equal(const trials::Trial& found, const trials::Trial& wanted) {
  INFO("trial " << wanted.number);
  CHECK(found.number == wanted.number);
  CHECK(std::string(name_of(found.state)) == name_of(wanted.state));
  CHECK(found.values == wanted.values);
  CHECK(found.reason == wanted.reason);
  CHECK((found.started == wanted.started));
  CHECK((found.completed == wanted.completed));
  CHECK(same_metrics(found.test_metrics, wanted.test_metrics));
  REQUIRE(found.params.size() == wanted.params.size());
  for (std::size_t i = 0; i < wanted.params.size(); ++i) {
    CHECK(found.params[i].first == wanted.params[i].first);
    INFO(wanted.params[i].first << ": found " << trials::to_text(found.params[i].second) << ", wanted "
                                << trials::to_text(wanted.params[i].second));
    CHECK(same_value(found.params[i].second, wanted.params[i].second));
  }
  CHECK((found.copies == wanted.copies));
  REQUIRE(found.epochs.size() == wanted.epochs.size());
  for (std::size_t i = 0; i < wanted.epochs.size(); ++i) {
    CHECK(found.epochs[i].epoch == wanted.epochs[i].epoch);
    CHECK(same_metrics(found.epochs[i].metrics, wanted.epochs[i].metrics));
  }
}

}  // namespace

void check_equal(const std::vector<trials::Trial>& found, const std::vector<trials::Trial>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) check_equal(found[i], wanted[i]);
}

}  // namespace hfta::storage::testing
