/// What is packed into a study's record is what is read from it; what pack() never wrote is refused with its place.

#include "engine/study_record/study_record.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;

namespace {

storage::StudyRecord record_of(const std::string& config_json) {
  storage::StudyRecord record;
  record.name = "s";
  record.config_json = config_json;
  return record;
}

std::string message_of(const std::string& config_json) {
  try {
    (void)settings_of(unpack(record_of(config_json)).value(), "s");
  } catch (const Error& error) {
    CHECK((error.kind() == ErrorKind::kStorage));
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a config comes back from the record as it was packed") {
  KeptConfig config;
  config.config = {{"method", "tpe"}};
  config.file = "/home/a b/s.yaml";
  config.set = {{"train.epochs", "9"}, {"seed", "\"7\""}};
  CHECK(pack(config) == R"({"config":{"method":"tpe"},"file":"/home/a b/s.yaml","set":[["train.epochs","9"],)"
                        R"(["seed","\"7\""]]})");
  config.models = {{"m.pt2", "1"}};
  config.data = {{"a.csv 7", "2"}};
  config.stamps = {{"a.csv", "3 4"}};
  config.prior = {{{"value", 0.5}}};
  config.choice = KeptConfig::Choice{{{"method", "tpe"}}, "so it is"};
  const KeptConfig back = unpack(record_of(pack(config))).value();
  CHECK(back.config == config.config);
  CHECK(back.file == config.file);
  CHECK(back.set == config.set);
  CHECK(back.models == config.models);
  CHECK(back.data == config.data);
  CHECK(back.stamps == config.stamps);
  CHECK(back.prior == config.prior);
  REQUIRE(back.choice);
  CHECK(back.choice->keys == config.choice->keys);
  CHECK(back.choice->reason == "so it is");
  config.choice->reason = "";
  CHECK_FALSE(unpack(record_of(pack(config)))->choice);
}

TEST_CASE("a study that hfta-tune did not make has no config") {
  for (const char* text : {"", "{", "{}", "[1]", "null", R"({"config": {}})", R"({"config": {}, "file": ""})"}) {
    CAPTURE(text);
    CHECK_FALSE(unpack(record_of(text)));
  }
}

TEST_CASE("settings are those of the config, and defaults where it has none") {
  const KeptSettings none = settings_of({json::object(), "", {}, {}, {}, {}}, "s");
  CHECK(none.method.empty());
  CHECK_FALSE(none.select_best);
  CHECK_FALSE(none.repetitions.any());
  KeptConfig config;
  config.config = json::parse(
      R"({"method": "random", "metric": {"select": "best"}, "repeat": 3, "folds": {"count": 1000}, "rank": "lower"})");
  const KeptSettings settings = settings_of(config, "s");
  CHECK(settings.method == "random");
  CHECK(settings.select_best);
  CHECK(settings.repetitions.seeds == 3);
  CHECK(settings.repetitions.folds == 1000);
  CHECK((settings.repetitions.rank == trials::Rank::kLower));
  config.config = json::parse(R"({"metric": [{"name": "a"}, {"name": "b"}]})");  // of several objectives
  CHECK_FALSE(settings_of(config, "s").select_best);
}

TEST_CASE("a member that no config packs is refused with its place, what was found and what was wanted") {
  struct Case {
    const char* members;
    const char* says;
  };
  const Case cases[] = {
      {R"("config": [], "file": "", "set": [])", "/config: found [], wanted an object"},
      {R"("config": {}, "file": 3, "set": [])", "/file: found 3, wanted a text"},
      {R"("config": {}, "file": "", "set": {})", "/set: found {}, wanted a list"},
      {R"("config": {}, "file": "", "set": [["a", "b"], ["c"]])",
       R"(/set/1: found ["c"], wanted a list of two texts, a key and its value)"},
      {R"("config": {}, "file": "", "set": [], "models": 3)", "/models: found 3, wanted an object of texts"},
      {R"("config": {}, "file": "", "set": [], "stamps": {"a": 1})",
       R"(/stamps: found {"a":1}, wanted an object of texts)"},
      {R"("config": {}, "file": "", "set": [], "prior": 0)", "/prior: found 0, wanted a list"},
      {R"("config": {}, "file": "", "set": [], "choice": 1)", "/choice/keys: found nothing, wanted a list"},
      {R"("config": {}, "file": "", "set": [], "choice": {"keys": []})",
       "/choice/reason: found nothing, wanted a text"},
      {R"("config": {"repeat": 1001}, "file": "", "set": [])",
       "/config/repeat: found 1001, wanted an integer from 1 to 1000"},
      {R"("config": {"repeat": 18446744073709551615}, "file": "", "set": [])",
       "/config/repeat: found 18446744073709551615, wanted an integer from 1 to 1000"},
      {R"("config": {"repeat": 2.5}, "file": "", "set": [])",
       "/config/repeat: found 2.5, wanted an integer from 1 to 1000"},
      {R"("config": {"folds": {"count": 0}}, "file": "", "set": [])",
       "/config/folds/count: found 0, wanted an integer from 1 to 1000"},
      {R"("config": {"rank": "best"}, "file": "", "set": [])",
       R"(/config/rank: found "best", wanted one of mean, lower, median)"},
      {R"("config": {"method": 1}, "file": "", "set": [])", "/config/method: found 1, wanted a text"},
      {R"("config": {"metric": {"select": null}}, "file": "", "set": [])",
       "/config/metric/select: found null, wanted a text"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.members);
    CHECK(message_of("{" + std::string(c.members) + "}") == "study 's': its record: " + std::string(c.says));
  }
}
