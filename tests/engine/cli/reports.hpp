#pragma once
// What a run has told and stored, as tests look at it.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "program.hpp"

namespace hfta::testing {

/// How often a text has that part.
inline long count(const std::string& text, const std::string& part) {
  long n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The study's report from the store digits.db.
inline nlohmann::json report(const Workplace& place, const std::string& study = "digits") {
  const Finished finished = place.run({"report", study, "--storage", "digits.db", "--format", "json"});
  REQUIRE(finished.code == 0);
  return nlohmann::json::parse(finished.out);
}

}  // namespace hfta::testing
