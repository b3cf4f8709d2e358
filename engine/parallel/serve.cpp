#include "engine/parallel/serve.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/parallel/requests.hpp"
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
  Session(Channel& channel, RankTrainer& trainer, const Faults& faults)
      : channel_(channel), trainer_(trainer), faults_(faults) {}

  json answer(const json& request) {
    static const std::map<std::string, json (Session::*)(const json&), std::less<>> calls = {
        {"times", &Session::times},   {"exchange", &Session::exchange}, {"try", &Session::try_out},
        {"open", &Session::open},     {"close", &Session::close},       {"admit", &Session::admit},
        {"insert", &Session::insert}, {"extract", &Session::extract},   {"gather", &Session::gather},
        {"test", &Session::test},     {"clear", &Session::clear},       {"resize", &Session::resize},
        {"run", &Session::run},       {"pause", &Session::pause}};
    try {
      const auto& name = request.at("call").get_ref<const std::string&>();
      const auto call = calls.find(name);
      if (call == calls.end()) {
        throw Error(ErrorKind::kInternal,
                    fmt::format("found the request '{}', wanted one of this version of hfta-tune", printable(name)));
      }
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

  // Recalls rank 0's choices, as a rank runs as rank 0 does.
  void recall(const json& request) {
    const std::string why = trainer_.recall(request.at("partition"), request.at("choices"));
    if (!why.empty()) throw Error(ErrorKind::kInternal, "rank: " + why);
  }

  json times(const json& request) {
    recall(request);
    return {{"times", times_json(trainer_.rank_times(params_from(request.at("params")), request.at("width"),
                                                     request.at("batches")))}};
  }
  json exchange(const json& request) {
    recall(request);
    static_cast<void>(trainer_.exchange_seconds(params_from(request.at("params")), request.at("width")));
    return json::object();
  }
  json try_out(const json& request) {
    recall(request);
    const std::optional<Division> division = division_from(request.at("division"));
    if (!division) throw Error(ErrorKind::kInternal, "rank: found no division, wanted one to try");
    static_cast<void>(
        trainer_.tried_seconds(params_from(request.at("params")), request.at("width"), *division, request.at("steps")));
    return json::object();
  }
  json open(const json& request) {
    array_.reset();
    recall(request);
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
    array().insert(request.at("slot"), request.at("number"), params_from(request.at("params")),
                   state_from(request.at("state")));
    return json::object();
  }
  json extract(const json& request) { return {{"state", state_json(array().extract(request.at("slot")))}}; }
  json gather(const json& request) {
    static_cast<void>(array().extract(request.at("slot")));
    return json::object();
  }
  json test(const json& request) { return {{"metrics", array().test(request.at("slot"))}}; }
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
    const auto asked = [&] { return channel_.comes_within(std::chrono::milliseconds(0)); };
    const std::optional<std::vector<SlotReport>> reports = array().run_epoch(asked);
    return reports ? json{{"reports", reports_json(*reports)}} : json::object();
  }
  json pause(const json& /*request*/) { return json::object(); }

  Channel& channel_;
  RankTrainer& trainer_;
  const Faults& faults_;
  std::unique_ptr<TrainerArray> array_;
};

}  // namespace

void serve(Channel& channel, RankTrainer& trainer, const Faults& faults) {
  Session session(channel, trainer, faults);
  while (const std::optional<json> request = channel.receive()) {
    const json answer = session.answer(*request);
    channel.send(answer);
    if (!goes_on(*request, answer)) return;
  }
}

void send_error(Channel& channel, const std::exception& error) { channel.send(error_json(error)); }

}  // namespace hfta::engine
