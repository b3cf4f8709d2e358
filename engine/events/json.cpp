#include "trials/json.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "engine/events/event.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json metrics_json(const std::map<std::string, double>& metrics) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, value] : metrics) all[name] = value;
  return all;
}

ordered_json best_json(const std::optional<BestSoFar>& best) {
  if (!best) return nullptr;
  return {{"trial", best->number},
          {"epoch", best->epoch},
          {"value", best->value},
          {"params", trials::values_by_name(best->params)}};
}

ordered_json json_of(const RunStarted& e) {
  ordered_json json = {{"event", "run_started"},
                       {"study", e.study},
                       {"storage", e.storage},
                       {"metric", e.objectives.front().metric},
                       {"direction", name_of(e.objectives.front().goal)},
                       {"devices", e.devices},
                       {"resumed", e.resumed}};
  if (e.objectives.size() > 1) json["objectives"] = trials::objectives_json(e.objectives);
  return json;
}

ordered_json json_of(const TrialStarted& e) {
  return {{"event", "trial_started"},
          {"trial", e.trial},
          {"params", trials::values_by_name(e.params)},
          {"array", e.array},
          {"slot", e.slot}};
}

ordered_json json_of(const EpochEnded& e) {
  return {{"event", "epoch_ended"}, {"trial", e.trial}, {"epoch", e.epoch}, {"metrics", metrics_json(e.metrics)},
          {"value", e.value},       {"array", e.array}, {"slot", e.slot}};
}

ordered_json json_of(const TrialCopied& e) {
  return {{"event", "trial_copied"},
          {"trial", e.trial},
          {"epoch", e.epoch},
          {"source", e.source},
          {"params", trials::values_by_name(e.params)}};
}

ordered_json json_of(const TrialEnded& e) {
  ordered_json json = {{"event", "trial_ended"},
                       {"trial", e.trial},
                       {"state", trials::name_of(e.state)},
                       {"value", or_null(trials::first_of(e.values))},
                       {"reason", e.reason.empty() ? ordered_json(nullptr) : ordered_json(e.reason)}};
  if (e.values.size() > 1) json["values"] = e.values;
  return json;
}

ordered_json json_of(const ArrayChanged& e) {
  return {{"event", "array_changed"}, {"array", e.array}, {"device", e.device},  {"partition", e.partition},
          {"width", e.width},         {"chunk", e.chunk}, {"threads", e.threads}};
}

ordered_json json_of(const Tested& e) {
  return {{"event", "tested"}, {"trial", e.trial}, {"metrics", metrics_json(e.metrics)}};
}

ordered_json json_of(const Note& e) { return {{"event", "note"}, {"text", e.text}}; }

ordered_json json_of(const Status& e) {
  ordered_json arrays = ordered_json::array();
  for (const ArrayStatus& array : e.arrays) {
    arrays.push_back({{"device", array.device},
                      {"partition", array.partition},
                      {"width", array.width},
                      {"occupied", array.occupied}});
  }
  ordered_json json = {{"event", "status"},
                       {"round", e.round},
                       {"trials", or_null(e.planned)},
                       {"complete", e.complete},
                       {"pruned", e.pruned},
                       {"failed", e.failed},
                       {"running", e.running},
                       {"waiting", e.waiting},
                       {"epochs", e.epochs},
                       {"epochs_left", or_null(e.epochs_left)},
                       {"epochs_per_second", e.rate > 0 ? ordered_json(e.rate) : ordered_json(nullptr)},
                       {"seconds", e.seconds},
                       {"best", best_json(e.best)},
                       {"arrays", std::move(arrays)}};
  if (e.front) json["front"] = *e.front;
  return json;
}

ordered_json json_of(const RunEnded& e) {
  ordered_json json = {{"event", "run_ended"}, {"finished", e.finished}, {"best", best_json(e.best)}};
  if (e.front) json["front"] = *e.front;
  return json;
}

}  // namespace

std::string event_json(const Event& event) {
  const ordered_json json = std::visit([](const auto& e) { return json_of(e); }, event);
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hfta::engine
