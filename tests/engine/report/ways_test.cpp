#include "engine/report/ways.hpp"

#include <catch2/catch.hpp>

namespace hfta::engine {
namespace {

storage::ArrayRecord array(const std::string& choices) {
  storage::ArrayRecord record;
  record.choices_json = choices;
  return record;
}

}  // namespace

TEST_CASE("arrays that ran alike are one line, with what most was held") {
  const std::vector<WayThatRan> ways =
      ways_that_ran({array(R"({"lowering": "a", "held_bytes": 100, "predicted": {"bytes": 200}})"),
                     array(R"({"lowering": "b", "held_bytes": 2097152, "predicted": {"bytes": 2097152},
                 "choices": {"memory": "recompute"}})"),
                     array(R"({"lowering": "a", "held_bytes": 300, "predicted": {"bytes": 301}})"),
                     array(R"({"lowering": "a", "held_bytes": 50, "predicted": {"bytes": 900}})")});
  CHECK(ways_text(ways) ==
        "memory: 3 arrays by a; at most 300 bytes held, 301 bytes predicted\n"
        "memory: 1 array by b (memory recompute); at most 2.0 MiB held, 2.0 MiB predicted\n");
}

TEST_CASE("how ranks shared the arrays is told") {
  const char* const record =
      R"({"lowering": "eager", "choices": {"ranks": {"chosen": {"of": "slots", "parts": [3, 1]}, "plans": []}}})";
  const std::vector<WayThatRan> ways = ways_that_ran({{0, "cpu:1+cpu:1", "", 4, 1, 2, record}});
  REQUIRE(ways.size() == 1);
  CHECK(ways.front().lowering == "eager; slots 3:1 over ranks");
}

TEST_CASE("records that do not say how an array ran are left out") {
  for (const char* choices : {"", "{", "[]", "{}", "3", R"({"lowering": 3})", R"({"lowering": ""})"}) {
    INFO(choices);
    CHECK(ways_that_ran({array(choices)}).empty());
  }
  CHECK(ways_text({}).empty());
  const auto odd = ways_that_ran({array(R"({"lowering": "a", "held_bytes": "x", "predicted": 3, "choices": []})"),
                                  array(R"({"lowering": "a\u001b[1m", "choices": {"memory": {}}})")});
  REQUIRE(odd.size() == 2);
  CHECK(odd.front().held_bytes == 0);
  CHECK(ways_text(odd).find('\x1b') == std::string::npos);
}

}  // namespace hfta::engine
