// Messages between two processes, here two ends in one.
#include "engine/parallel/channel.hpp"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hpp"
#include "engine/params_json.hpp"

namespace hfta::engine::testing {
namespace {

using nlohmann::json;

struct Ends {
  Channel one, other;
  static Ends made() {
    auto [one, other] = make_stream();
    return {Channel(std::move(one)), Channel(std::move(other))};
  }
};

}  // namespace

TEST_CASE("messages arrive in order, with the bits of their numbers") {
  Ends ends = Ends::made();
  const trials::Params params = {{"a", 3.0}, {"b", std::int64_t{3}}, {"c", 0.1 + 0.2}, {"d", true}, {"e", {}},
                                 {"f", "3"}};
  const json sent = {{"params", params_json(params)}, {"loss", std::nextafter(1.0, 2)}};
  ends.one.send(sent);
  ends.one.send(json::array({1, -0.0, std::numeric_limits<double>::quiet_NaN(), 1e300}));
  const json first = ends.other.receive().value(), second = ends.other.receive().value();
  CHECK(params_from(first.at("params")) == params);
  CHECK(first.at("loss").get<double>() == std::nextafter(1.0, 2));
  CHECK(std::signbit(second[1].get<double>()));
  CHECK(std::isnan(second[2].get<double>()));
  CHECK_FALSE(ends.other.comes_within(std::chrono::milliseconds(1)));
}

TEST_CASE("a large message arrives whole") {
  Ends ends = Ends::made();
  std::vector<std::uint8_t> bytes(50'000'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 31);
  std::thread sender([&] { ends.one.send({{"state", json::binary(bytes)}}); });
  const std::optional<json> message = ends.other.receive();
  sender.join();
  REQUIRE(message);
  CHECK(std::equal(bytes.begin(), bytes.end(), message->at("state").get_binary().begin()));
}

TEST_CASE("a closed end is the end of messages, and an error to write to") {
  Ends ends = Ends::made();
  ends.one.send({{"last", 1}});
  CHECK_FALSE(ends.other.is_closed());
  ends.one = Channel(Descriptor());
  CHECK(ends.other.is_closed());
  CHECK(ends.other.receive().has_value());
  CHECK_FALSE(ends.other.receive().has_value());
  CHECK(ends.other.comes_within(std::chrono::milliseconds(1)));
  CHECK_THROWS_AS(ends.other.send({{"to", "nobody"}}), Error);
}

TEST_CASE("half a message is none, and what is no message is an error") {
  const auto received = [](const std::string& bytes, std::uint64_t length) {
    auto [one, other] = make_stream();
    Channel channel(std::move(other));
    REQUIRE(::send(one.get(), &length, sizeof length, 0) == sizeof length);
    REQUIRE(::send(one.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    one = Descriptor();
    return channel.receive();
  };
  CHECK_FALSE(received("ab", 3).has_value());
  CHECK_FALSE(received("ab", std::numeric_limits<std::uint64_t>::max() / 2).has_value());
  CHECK_THROWS_WITH(received("\xff\xff", 2), Catch::StartsWith("ranks: found 2 bytes that are no message"));
}

}  // namespace hfta::engine::testing
