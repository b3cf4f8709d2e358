// Devices that fail, wherever they are asked for something.

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;

namespace {

const char* const kCalls[] = {"admit", "insert", "extract", "clear", "resize"};

// Files are named "trial-3.epoch-9. ...": with several epochs of a trial, or one, as time goes.
std::set<std::string> trials_with_weights(const StudyFixture& study) {
  std::set<std::string> trials;
  for (const auto& entry : std::filesystem::directory_iterator(study.checkpoints / "finished")) {
    const std::string name = entry.path().filename().string();
    const std::size_t first = name.find_first_of("0123456789");
    trials.insert(name.substr(first, name.find_first_not_of("0123456789", first) - first));
  }
  return trials;
}

}  // namespace

TEST_CASE("a device that fails gives its trials back to the others") {
  const int at = GENERATE(1, 2, 9, 30);
  const int devices = GENERATE(2, 3);
  CAPTURE(at, devices);
  StudyFixture study(digits_config());
  study.config.width = 8;
  std::atomic<int> epochs{0};  // of all devices: how many of them one gets is a matter of pace
  std::string failed;
  study.world.before_epoch = [&](const std::string& device) {
    if (++epochs != at) return;
    failed = device;
    throw Error(ErrorKind::kDevice, device + ": fell off the bus");
  };
  CHECK(study.run(devices).stopped_by == 0);
  CHECK(study.table() == reference_table());
  const std::vector<std::string>& notes = study.recorder.notes;
  CHECK(notes == std::vector<std::string>{failed + ": fell off the bus; its trials go on on the other devices"});
}

TEST_CASE("when the last device fails the run ends, and another one goes on from there") {
  StudyFixture study(digits_config());
  study.config.width = 8;
  std::atomic<int> epochs{0};
  study.world.before_epoch = [&](const std::string& device) {
    if (++epochs >= 20) throw Error(ErrorKind::kDevice, device + ": fell off the bus");
  };
  try {
    (void)study.run(2);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDevice);
  }
  CHECK(total_epochs(study.trials()) > 50);
  study.world.before_epoch = nullptr;
  (void)study.run(2);
  CHECK(study.table() == reference_table());
}

TEST_CASE("a device may fail while trials are moved, and none of them is lost") {
  const std::string call = GENERATE(from_range(std::vector<std::string>(std::begin(kCalls), std::end(kCalls))));
  const int at = GENERATE(1, 2, 9, 30);
  const bool best = GENERATE(true, false);
  CAPTURE(call, at, best);
  StudyConfig config = digits_config();
  config.select_best = best;
  config.width = 8;
  StudyFixture whole(config), study(config);
  (void)whole.run(2);
  int calls = 0;
  study.fail_at(call, at, calls);
  CHECK(study.run(2).stopped_by == 0);
  CHECK(study.table() == whole.table());
  CHECK(study.world.tests == whole.world.tests);
  CHECK(study.recorder.notes.size() == (calls >= at ? 1 : 0));
}

TEST_CASE("a trial whose weights are lost as it ends is trained again for them") {
  const int at = GENERATE(range(1, 24));
  const bool best = GENERATE(true, false);
  CAPTURE(at, best);
  StudyConfig config = random_config(8);
  config.select_best = best;
  config.keep = 8;
  config.width = 2;
  StudyFixture whole(config), study(config);
  (void)whole.run(2);
  int calls = 0;
  study.fail_at("extract", at, calls);
  CHECK(study.run(2).stopped_by == 0);
  CHECK(study.table() == whole.table());
  CHECK(trials_with_weights(study).size() == 8);
}

TEST_CASE("memory may run out while trials are moved, and none of them is lost") {
  const std::string call = GENERATE(from_range(std::vector<std::string>(std::begin(kCalls), std::end(kCalls))));
  const int at = GENERATE(1, 3, 20);
  CAPTURE(call, at);
  StudyFixture study(digits_config());
  study.config.width = 8;
  int calls = 0;
  study.world.before_call = [&](const std::string& device, const std::string& name) {
    if (name == call && ++calls == at) throw Error(ErrorKind::kMemory, device + ": out of memory");
  };
  CHECK(study.run().stopped_by == 0);
  CHECK(study.table() == reference_table());
}
