// What torch.export took for granted about a batch.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fusion/exported.hpp"
#include "pt2_text.hpp"

namespace hfta::fusion::test {
namespace {

using Json = nlohmann::json;

std::vector<std::byte> with(const Json& changes) {
  std::vector<Member> members = unpack(bytes_of(golden("torch-2.11")));
  for (Member& member : members) {
    if (member.name != "models/model.json") continue;
    Json json = Json::parse(member.bytes);
    json.merge_patch(changes);
    member.bytes = json.dump();
  }
  return pack(members);
}

BatchLimits limits_of(const Json& changes) { return ExportedModel::parse(with(changes), "m.pt2").graph({}).limits; }

TEST_CASE("guards on the batch come along", "[pt2]") {
  const BatchLimits limits = limits_of(
      {{"guards_code", {"(L['x'].size()[0] % 2) == 0", "L['x'].size()[1] == 1", "L['args'][0].size()[0] < 1000"}}});
  CHECK(limits.conditions == std::vector<std::string>{"(N % 2) == 0", "N < 1000"});
  CHECK(limits.allow(64));
  CHECK_FALSE(limits.allow(63));
}

TEST_CASE("a lower bound of the batch counts from two on", "[pt2]") {
  const auto least = [](std::int64_t value) {
    return limits_of({{"range_constraints", {{"s77", {{"min_val", value}, {"max_val", nullptr}}}}}}).smallest;
  };
  CHECK(least(0) == 0);
  CHECK(least(1) == 0);
  CHECK(least(2) == 2);
  CHECK(least(8) == 8);
}

TEST_CASE("guards of which nothing is known are refused", "[pt2]") {
  for (const char* guard : {"L['x'].stride()[0] == 3", "L['y'].size()[1] == 3", "L['x'].size()[9] == 3", "f(N) == 1",
                            "", "L['x'].size()[", "L['x'", "L['x'].size()[0] % 0 == 0"}) {
    INFO(guard);
    CHECK_THAT(error_of(with({{"guards_code", {guard}}})), Catch::Contains("was exported under the condition"));
  }
}

}  // namespace
}  // namespace hfta::fusion::test
