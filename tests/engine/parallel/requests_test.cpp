// Each message that ranks send arrives as it was.
#include "engine/parallel/requests.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;

namespace {

const trials::Params kParams = {{"lr", 0.1}, {"hidden", std::int64_t{8}}};
const ArrayWanted kWanted{"hidden=8", kParams, 3, "{}"};

// What arrives, as messages travel: as CBOR.
json sent(const json& message) { return json::from_cbor(json::to_cbor(message)); }

template <IsRequest Request>
Request arrived(const Request& request, const std::string& call) {
  const json message = sent(request);
  CHECK(message.at("call") == call);
  return message.get<Request>();
}

void check_equal(const ArrayWanted& found) {
  CHECK(found.partition == kWanted.partition);
  CHECK(found.params == kWanted.params);
  CHECK(found.width == kWanted.width);
  CHECK(found.choices == kWanted.choices);
}

}  // namespace

TEST_CASE("requests about an array arrive with its partition, parameters, width and choices") {
  check_equal(arrived(ExchangeRequest{kWanted}, "exchange"));
  check_equal(arrived(OpenRequest{kWanted}, "open"));
  const auto times = arrived(TimesRequest{kWanted, true}, "times");
  check_equal(times);
  CHECK(times.batches);
  const Division division{Division::Of::kSlots, {2, 1}};
  const auto tried = arrived(TryRequest{kWanted, division, 7}, "try");
  check_equal(tried);
  CHECK(tried.division == division);
  CHECK(tried.steps == 7);
  json message = TryRequest{kWanted, division, 7};
  message["division"] = json{{"of", "curses"}, {"parts", {1, 1}}};
  CHECK_THROWS_WITH(message.get<TryRequest>(), "rank: found no division, wanted one to try");
}

TEST_CASE("requests about a slot arrive with it, and with what is put into it") {
  CHECK(arrived(ExtractRequest{{4}}, "extract").slot == 4);
  CHECK(arrived(GatherRequest{{4}}, "gather").slot == 4);
  CHECK(arrived(TestRequest{{4}}, "test").slot == 4);
  CHECK(arrived(ClearRequest{{4}}, "clear").slot == 4);
  CHECK(arrived(ResizeRequest{5}, "resize").width == 5);
  const auto admitted = arrived(AdmitRequest{{4, 11, kParams}}, "admit");
  CHECK((admitted.slot == 4 && admitted.number == 11 && admitted.params == kParams));
  const SlotState state = {std::byte{0}, std::byte{255}, std::byte{7}};
  const json message = sent(InsertRequest{{4, 11, kParams}, state});
  CHECK(message.at("call") == "insert");
  const auto inserted = message.get<InsertRequest>();
  CHECK((inserted.slot == 4 && inserted.number == 11 && inserted.params == kParams));
  CHECK(SlotState(inserted.state.begin(), inserted.state.end()) == state);
  static_cast<void>(arrived(CloseRequest{}, "close"));
  static_cast<void>(arrived(RunRequest{}, "run"));
  static_cast<void>(arrived(PauseRequest{}, "pause"));
}

TEST_CASE("answers arrive as they were") {
  const auto times = sent(TimesAnswer{{{0.1, 0.25}, {{16, 1.0 / 3}}}}).get<TimesAnswer>().times;
  CHECK(times.of_slots == std::vector{0.1, 0.25});
  CHECK(times.of_samples.at(16) == 1.0 / 3);
  const SlotState state = {std::byte{1}, std::byte{0}};
  CHECK(sent(StateAnswer{state}).get<StateAnswer>().state == state);
  CHECK(sent(MetricsAnswer{{{"loss", 0.1}}}).get<MetricsAnswer>().metrics.at("loss") == 0.1);
  CHECK_FALSE(sent(RunAnswer{}).get<RunAnswer>().reports);
  const auto run = sent(RunAnswer{{{{2, 3, {{"train_loss", 0.5}}}}}}).get<RunAnswer>();
  REQUIRE(run.reports);
  REQUIRE(run.reports->size() == 1);
  CHECK(run.reports->front().slot == 2);
  CHECK(run.reports->front().epoch == 3);
  CHECK(run.reports->front().metrics.at("train_loss") == 0.5);
}

TEST_CASE("an error arrives with its kind, by name; one that is not known is a bug of ours") {
  for (const ErrorKind kind : {ErrorKind::kConfig, ErrorKind::kStorage, ErrorKind::kLocked, ErrorKind::kDevice,
                               ErrorKind::kMemory, ErrorKind::kInternal, ErrorKind::kBusy}) {
    const json message = sent(error_answer(Error(kind, "smoke")));
    CHECK(is_error(message));
    CHECK(message.get<ErrorAnswer>().error == "smoke");
    CHECK((message.get<ErrorAnswer>().kind == kind));
    CHECK(goes_on(InsertRequest{}, message) == (kind == ErrorKind::kStorage));
    CHECK_FALSE(goes_on(AdmitRequest{}, message));
  }
  CHECK(json(ErrorAnswer{"smoke", ErrorKind::kMemory}) == json({{"error", "smoke"}, {"kind", "memory"}}));
  CHECK((json({{"error", "smoke"}, {"kind", "curse"}}).get<ErrorAnswer>().kind == ErrorKind::kInternal));
  CHECK((error_answer(std::runtime_error("smoke")).kind == ErrorKind::kInternal));
  CHECK(goes_on(AdmitRequest{}, RunAnswer{}));
}
