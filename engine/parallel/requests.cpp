#include "engine/parallel/requests.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/params_json.hpp"

namespace hfta::engine {

using nlohmann::json;

json admit_request(int slot, int number, const trials::Params& params) {
  return {{"call", "admit"}, {"slot", slot}, {"number", number}, {"params", params_json(params)}};
}

json insert_request(int slot, int number, const trials::Params& params, const SlotState& state) {
  json request = admit_request(slot, number, params);
  request["call"] = "insert";
  request["state"] = state_json(state);
  return request;
}

bool goes_on(const json& request, const json& answer) {
  if (!answer.contains("error")) return true;
  return request.value("call", "") == "insert" && answer.at("kind") == static_cast<int>(ErrorKind::kStorage);
}

json state_json(const SlotState& state) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(state.data());
  return json::binary({first, first + state.size()});
}

SlotState state_from(const json& binary) {
  const json::binary_t& bytes = binary.get_binary();
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

json reports_json(const std::vector<SlotReport>& reports) {
  json all = json::array();
  for (const SlotReport& report : reports) {
    all.push_back({{"slot", report.slot}, {"epoch", report.epoch}, {"metrics", report.metrics}});
  }
  return all;
}

std::vector<SlotReport> reports_from(const json& list) {
  std::vector<SlotReport> reports;
  for (const json& one : list) {
    reports.push_back({one.at("slot"), one.at("epoch"), one.at("metrics").get<std::map<std::string, double>>()});
  }
  return reports;
}

json times_json(const RankTimes& times) {
  json of_samples = json::array();
  for (const auto& [samples, seconds] : times.of_samples) of_samples.push_back(json::array({samples, seconds}));
  return {{"of_slots", times.of_slots}, {"of_samples", std::move(of_samples)}};
}

RankTimes times_from(const json& object) {
  RankTimes times{object.at("of_slots").get<std::vector<double>>(), {}};
  for (const json& pair : object.at("of_samples")) {
    times.of_samples.emplace(pair.at(0).get<std::int64_t>(), pair.at(1).get<double>());
  }
  return times;
}

}  // namespace hfta::engine
