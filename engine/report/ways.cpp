#include "engine/report/ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "engine/division/division.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// The bytes at a place of a record; 0 if it has no number there, as a store may come from anywhere.
std::int64_t bytes_at(const json& record, const json::json_pointer& place) {
  return record.contains(place) && record.at(place).is_number_integer() ? record.at(place).get<std::int64_t>() : 0;
}

std::string word_at(const json& record, const json::json_pointer& place) {
  return record.contains(place) && record.at(place).is_string() ? record.at(place).get<std::string>() : "";
}

const json::json_pointer kRanks("/choices/ranks");

}  // namespace

std::vector<WayThatRan> ways_that_ran(const std::vector<storage::ArrayRecord>& arrays) {
  std::vector<WayThatRan> all;
  for (const storage::ArrayRecord& array : arrays) {
    const json record = json::parse(array.choices_json, nullptr, false);
    WayThatRan one{
        word_at(record, json::json_pointer("/lowering")), word_at(record, json::json_pointer("/choices/memory")), 1,
        bytes_at(record, json::json_pointer("/held_bytes")), bytes_at(record, json::json_pointer("/predicted/bytes"))};
    if (one.lowering.empty()) continue;
    const auto ranks = rank_plans_from(record.contains(kRanks) ? record.at(kRanks) : json());
    if (ranks) one.lowering += fmt::format("; {} over ranks", ranks->chosen.to_text());
    const auto known = std::find_if(all.begin(), all.end(), [&](const WayThatRan& way) {
      return way.lowering == one.lowering && way.memory == one.memory;
    });
    if (known == all.end()) {
      all.push_back(std::move(one));
      continue;
    }
    one.arrays += known->arrays;
    if (one.held_bytes < known->held_bytes) {
      one.held_bytes = known->held_bytes;
      one.predicted_bytes = known->predicted_bytes;
    }
    *known = std::move(one);
  }
  return all;
}

std::string ways_text(const std::vector<WayThatRan>& ways) {
  std::string out;
  for (const WayThatRan& way : ways) {
    out += fmt::format("memory: {} array{} by {}{}; at most {} held, {} predicted\n", way.arrays,
                       way.arrays == 1 ? "" : "s", printable(way.lowering),
                       way.memory.empty() ? "" : fmt::format(" (memory {})", printable(way.memory)),
                       bytes_text(way.held_bytes), bytes_text(way.predicted_bytes));
  }
  return out;
}

}  // namespace hfta::engine
