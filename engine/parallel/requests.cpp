#include "engine/parallel/requests.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/params_json.hpp"

namespace hfta::engine {

using nlohmann::json;

namespace {

constexpr std::pair<ErrorKind, std::string_view> kKinds[] = {
    {ErrorKind::kConfig, "config"}, {ErrorKind::kStorage, "storage"}, {ErrorKind::kLocked, "locked"},
    {ErrorKind::kDevice, "device"}, {ErrorKind::kMemory, "memory"},   {ErrorKind::kInternal, "internal"},
    {ErrorKind::kBusy, "busy"},
};

std::string_view name_of(ErrorKind kind) {
  const auto* const found = std::ranges::find(kKinds, kind, &std::pair<ErrorKind, std::string_view>::first);
  return found == std::end(kKinds) ? name_of(ErrorKind::kInternal) : found->second;
}

ErrorKind kind_from(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &std::pair<ErrorKind, std::string_view>::second);
  return found == std::end(kKinds) ? ErrorKind::kInternal : found->first;
}

// Bytes as a binary value.
json bytes_json(std::span<const std::byte> bytes) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return json::binary({first, first + bytes.size()});
}

std::span<const std::byte> bytes_of(const json& binary) { return std::as_bytes(std::span(binary.get_binary())); }

}  // namespace

void write_fields(json& request, const ArrayWanted& fields) {
  request["partition"] = fields.partition;
  request["params"] = params_json(fields.params);
  request["width"] = fields.width;
  request["choices"] = fields.choices;
}
void read_fields(const json& request, ArrayWanted& fields) {
  request.at("partition").get_to(fields.partition);
  fields.params = params_from(request.at("params"));
  request.at("width").get_to(fields.width);
  request.at("choices").get_to(fields.choices);
}

void write_fields(json& request, const TimesRequest& fields) {
  write_fields(request, static_cast<const ArrayWanted&>(fields));
  request["batches"] = fields.batches;
}
void read_fields(const json& request, TimesRequest& fields) {
  read_fields(request, static_cast<ArrayWanted&>(fields));
  request.at("batches").get_to(fields.batches);
}

void write_fields(json& request, const TryRequest& fields) {
  write_fields(request, static_cast<const ArrayWanted&>(fields));
  request["division"] = division_json(fields.division);
  request["steps"] = fields.steps;
}
void read_fields(const json& request, TryRequest& fields) {
  read_fields(request, static_cast<ArrayWanted&>(fields));
  std::optional<Division> division = division_from(request.at("division"));
  if (!division) throw Error(ErrorKind::kInternal, "rank: found no division, wanted one to try");
  fields.division = *std::move(division);
  request.at("steps").get_to(fields.steps);
}

void write_fields(json& request, const TrialWanted& fields) {
  request["slot"] = fields.slot;
  request["number"] = fields.number;
  request["params"] = params_json(fields.params);
}
void read_fields(const json& request, TrialWanted& fields) {
  request.at("slot").get_to(fields.slot);
  request.at("number").get_to(fields.number);
  fields.params = params_from(request.at("params"));
}

void write_fields(json& request, const InsertRequest& fields) {
  write_fields(request, static_cast<const TrialWanted&>(fields));
  request["state"] = bytes_json(fields.state);
}
void read_fields(const json& request, InsertRequest& fields) {
  read_fields(request, static_cast<TrialWanted&>(fields));
  fields.state = bytes_of(request.at("state"));
}

void write_fields(json& request, const SlotWanted& fields) { request["slot"] = fields.slot; }
void read_fields(const json& request, SlotWanted& fields) { request.at("slot").get_to(fields.slot); }

void write_fields(json& request, const ResizeRequest& fields) { request["width"] = fields.width; }
void read_fields(const json& request, ResizeRequest& fields) { request.at("width").get_to(fields.width); }

void write_fields(json& /*request*/, const NothingWanted& /*fields*/) {}
void read_fields(const json& /*request*/, NothingWanted& /*fields*/) {}

void to_json(json& message, const TimesAnswer& answer) {
  json of_samples = json::array();
  for (const auto& [samples, seconds] : answer.times.of_samples) {
    of_samples.push_back(json::array({samples, seconds}));
  }
  message = {{"times", {{"of_slots", answer.times.of_slots}, {"of_samples", std::move(of_samples)}}}};
}
void from_json(const json& message, TimesAnswer& answer) {
  const json& object = message.at("times");
  answer.times = {object.at("of_slots").get<std::vector<double>>(), {}};
  for (const json& pair : object.at("of_samples")) {
    answer.times.of_samples.emplace(pair.at(0).get<std::int64_t>(), pair.at(1).get<double>());
  }
}

void to_json(json& message, const StateAnswer& answer) { message = {{"state", bytes_json(answer.state)}}; }
void from_json(const json& message, StateAnswer& answer) {
  const std::span<const std::byte> bytes = bytes_of(message.at("state"));
  answer.state = {bytes.begin(), bytes.end()};
}

void to_json(json& message, const MetricsAnswer& answer) { message = {{"metrics", answer.metrics}}; }
void from_json(const json& message, MetricsAnswer& answer) { message.at("metrics").get_to(answer.metrics); }

void to_json(json& message, const RunAnswer& answer) {
  message = json::object();
  if (!answer.reports) return;
  json all = json::array();
  for (const SlotReport& report : *answer.reports) {
    all.push_back({{"slot", report.slot}, {"epoch", report.epoch}, {"metrics", report.metrics}});
  }
  message["reports"] = std::move(all);
}
void from_json(const json& message, RunAnswer& answer) {
  answer.reports.reset();
  if (!message.contains("reports")) return;
  std::vector<SlotReport>& reports = answer.reports.emplace();
  for (const json& one : message.at("reports")) {
    reports.push_back({one.at("slot"), one.at("epoch"), one.at("metrics").get<std::map<std::string, double>>()});
  }
}

void to_json(json& message, const ErrorAnswer& answer) {
  message = {{"error", answer.error}, {"kind", name_of(answer.kind)}};
}
void from_json(const json& message, ErrorAnswer& answer) {
  message.at("error").get_to(answer.error);
  answer.kind = kind_from(message.at("kind").get<std::string>());
}

ErrorAnswer error_answer(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return {error.what(), ours == nullptr ? ErrorKind::kInternal : ours->kind()};
}

bool is_error(const json& answer) { return answer.contains("error"); }

bool goes_on(const json& request, const json& answer) {
  if (!is_error(answer)) return true;
  return request.value("call", "") == InsertRequest::kCall && answer.get<ErrorAnswer>().kind == ErrorKind::kStorage;
}

}  // namespace hfta::engine
