#include "engine/parallel/serve.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "engine/params_json.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

json error_json(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const ErrorKind kind = ours == nullptr ? ErrorKind::kInternal : ours->kind();
  return {{"error", error.what()}, {"kind", static_cast<int>(kind)}};
}

class Session {
 public:
  Session(Trainer& trainer, const Faults& faults) : trainer_(trainer), faults_(faults) {}

  json answer(const json& request) {
    static const std::map<std::string, json (Session::*)(const json&), std::less<>> calls = {
        {"open", &Session::open},     {"close", &Session::close}, {"admit", &Session::admit},
        {"insert", &Session::insert}, {"clear", &Session::clear}, {"resize", &Session::resize},
        {"run", &Session::run}};
    try {
      const auto call = calls.find(request.at("call").get_ref<const std::string&>());
      if (call == calls.end()) throw Error(ErrorKind::kInternal, "rank: found a request of another version");
      return (this->*call->second)(request);
    } catch (const std::exception& error) {
      return error_json(error);
    }
  }

 private:
  [[nodiscard]] TrainerArray& array() const {
    if (array_ != nullptr) return *array_;
    throw Error(ErrorKind::kInternal, "rank: found no array, wanted one to be opened first");
  }

  json open(const json& request) {
    array_.reset();
    const std::string why = trainer_.recall(request.at("partition"), request.at("choices"));
    if (!why.empty()) throw Error(ErrorKind::kInternal, "rank: " + why);
    array_ = trainer_.open(params_from(request.at("params")), request.at("width"), 0, never);
    return json::object();
  }
  json close(const json& /*request*/) {
    array_.reset();
    return json::object();
  }
  json admit(const json& request) {
    array().admit(request.at("slot"), request.at("number"), params_from(request.at("params")));
    return json::object();
  }
  json insert(const json& request) {
    const json::binary_t& bytes = request.at("state").get_binary();
    const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
    array().insert(request.at("slot"), request.at("number"), params_from(request.at("params")),
                   SlotState(first, first + bytes.size()));
    return json::object();
  }
  json clear(const json& request) {
    array().clear(request.at("slot"));
    return json::object();
  }
  json resize(const json& request) {
    array().resize(request.at("width"));
    return json::object();
  }
  json run(const json& /*request*/) {
    faults_.reach("rank-run");
    const std::optional<std::vector<SlotReport>> reports = array().run_epoch(never);
    if (!reports) return json::object();
    json losses = json::array();
    for (const SlotReport& report : *reports) losses.push_back(report.metrics.at("train_loss"));
    return {{"losses", std::move(losses)}};
  }

  Trainer& trainer_;
  const Faults& faults_;
  std::unique_ptr<TrainerArray> array_;
};

}  // namespace

void serve(Channel& channel, Trainer& trainer, const Faults& faults) {
  Session session(trainer, faults);
  while (const std::optional<json> request = channel.receive()) channel.send(session.answer(*request));
}

void send_error(Channel& channel, const std::exception& error) { channel.send(error_json(error)); }

}  // namespace hfta::engine
