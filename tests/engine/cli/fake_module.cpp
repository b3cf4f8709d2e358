// libhfta_torch.so for tests of the command line: the same entry point, fake trainers behind it. The environment
// says what goes wrong: HFTA_FAKE_DELAY_MS per epoch, HFTA_FAKE_DIVERGE=1 all trials, HFTA_FAKE_DATA=1
// no data, HFTA_FAKE_MODEL=<fingerprint> a model file m.pt2 of that content, HFTA_FAKE_BROKEN=1 whatever is asked
// for.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/stamp.hpp"
#include "engine/module.hpp"
#include "fake_trainer.hpp"

namespace {

using namespace hfta;
using namespace hfta::engine;

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

std::vector<std::string> devices(const std::vector<std::string>& wanted) {
  if (is_set("HFTA_FAKE_BROKEN")) throw Error(ErrorKind::kDevice, "fake: broken");
  if (wanted.front().starts_with("cuda"))
    throw Error(ErrorKind::kDevice, "device: found cuda, wanted cpu: this machine is a fake");
  if (wanted.front() == "all") return {"fake:0", "fake:1"};
  std::vector<std::string> all;
  for (const std::string& word : wanted) all.push_back("fake" + (word.starts_with("cpu") ? word.substr(3) : ""));
  return all;
}

std::unique_ptr<RankTrainer> make_trainer(const TrainerOptions& options) {
  if (is_set("HFTA_FAKE_DATA")) throw Error(ErrorKind::kConfig, "data: found no file, wanted one");
  static testing::World world;
  world.models.clear();
  if (const char* fingerprint = std::getenv("HFTA_FAKE_MODEL")) {
    world.models = {{"m.pt2", fingerprint, "2.11.0", {"x: float32 [N, 1, 8, 8]"}, 0, {"m.pt2: fake note"}, {}}};
    world.models.front().stamps = {{"m.pt2", stamp_of("m.pt2")}};
  }
  if (is_set("HFTA_FAKE_DIVERGE")) world.diverge = {-1};
  if (const char* delay = std::getenv("HFTA_FAKE_DELAY_MS")) {
    const int milliseconds = std::atoi(delay);
    world.after_epochs = [milliseconds](int) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  }
  return std::make_unique<testing::FakeTrainer>(world, options.label);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const hfta::engine::TorchModule* hfta_torch_module() {
  static const TorchModule module{"fake", devices, make_trainer};
  return &module;
}
