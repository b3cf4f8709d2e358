#include "engine/parallel/serve.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

class Session {
 public:
  Session(Channel& channel, RankTrainer& trainer, const Faults& faults)
      : channel_(channel), trainer_(trainer), faults_(faults) {}

  json answer(const json& request) {
    static const std::map<std::string_view, json (Session::*)(const json&)> calls = {
        entry<TimesRequest>(),  entry<ExchangeRequest>(), entry<TryRequest>(),    entry<OpenRequest>(),
        entry<CloseRequest>(),  entry<AdmitRequest>(),    entry<InsertRequest>(), entry<ExtractRequest>(),
        entry<GatherRequest>(), entry<TestRequest>(),     entry<ClearRequest>(),  entry<ResizeRequest>(),
        entry<RunRequest>(),    entry<PauseRequest>()};
    try {
      const auto& name = request.at("call").get_ref<const std::string&>();
      const auto call = calls.find(name);
      if (call == calls.end()) {
        throw Error(ErrorKind::kInternal,
                    fmt::format("found the request '{}', wanted one of this version of hfta-tune", printable(name)));
      }
      return (this->*call->second)(request);
    } catch (const std::exception& error) {
      return error_answer(error);
    }
  }

 private:
  template <IsRequest Request>
  static std::pair<const std::string_view, json (Session::*)(const json&)> entry() {
    return {Request::kCall, &Session::answer_to<Request>};
  }
  // A request without an answer of its own is answered by an empty object.
  template <IsRequest Request>
  json answer_to(const json& message) {
    const auto request = message.get<Request>();
    if constexpr (std::is_void_v<decltype(call(request))>) {
      call(request);
      return json::object();
    } else {
      return call(request);
    }
  }

  [[nodiscard]] TrainerArray& array() const {
    if (array_ != nullptr) return *array_;
    throw Error(ErrorKind::kInternal, "rank: found no array, wanted one to be opened first");
  }

  // Recalls rank 0's choices, as a rank runs as rank 0 does.
  void recall(const ArrayWanted& wanted) {
    const std::string why = trainer_.recall(wanted.partition, wanted.choices);
    if (!why.empty()) throw Error(ErrorKind::kInternal, "rank: " + why);
  }

  TimesAnswer call(const TimesRequest& request) {
    recall(request);
    return {trainer_.rank_times(request.params, request.width, request.batches)};
  }
  void call(const ExchangeRequest& request) {
    recall(request);
    static_cast<void>(trainer_.exchange_seconds(request.params, request.width));
  }
  void call(const TryRequest& request) {
    recall(request);
    static_cast<void>(trainer_.tried_seconds(request.params, request.width, request.division, request.steps));
  }
  void call(const OpenRequest& request) {
    array_.reset();
    recall(request);
    array_ = trainer_.open(request.params, request.width, 0, never);
  }
  void call(const CloseRequest& /*request*/) { array_.reset(); }
  void call(const AdmitRequest& request) { array().admit(request.slot, request.number, request.params); }
  void call(const InsertRequest& request) {
    array().insert(request.slot, request.number, request.params, {request.state.begin(), request.state.end()});
  }
  StateAnswer call(const ExtractRequest& request) { return {array().extract(request.slot)}; }
  void call(const GatherRequest& request) { static_cast<void>(array().extract(request.slot)); }
  MetricsAnswer call(const TestRequest& request) { return {array().test(request.slot)}; }
  void call(const ClearRequest& request) { array().clear(request.slot); }
  void call(const ResizeRequest& request) { array().resize(request.width); }
  RunAnswer call(const RunRequest& /*request*/) {
    faults_.reach("rank-run");
    const auto asked = [&] { return channel_.comes_within(std::chrono::milliseconds(0)); };
    return {array().run_epoch(asked)};
  }
  void call(const PauseRequest& /*request*/) {}

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

void send_error(Channel& channel, const std::exception& error) { channel.send(error_answer(error)); }

}  // namespace hfta::engine
