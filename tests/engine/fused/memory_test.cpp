#include "engine/fused/memory.hpp"

#include <nlohmann/json.hpp>

#include "engine/fused/fused_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/source_folder.hpp"

namespace hfta::engine {
namespace {

StudyConfig config(const std::string& optimizer) {
  return parse_config(R"(study: memory
method: random
run_cap: 8
metric: {name: val_loss, goal: minimize}
parameters: {lr: {min: 0.01, max: 0.1}}
model: {layers: [flatten, {linear: [64, 32]}, relu, {linear: [32, 10]}]}
data: {name: digits, batch_size: 256, validation: 0.2}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: )" +
                          optimizer + R"(, lr: "${lr}"}}
array: {width: 4, threads: 2}
)",
                      "s.yaml", {});
}

}  // namespace

TEST_CASE("room is shared out among slots, of which only some work at a time") {
  const MemoryNeed need{10, 100, 50};
  CHECK(need.total(3, 2) == 50 + 30 + 200);
  CHECK(need.most_slots(1, 2) == 1);     // one is always tried
  CHECK(need.most_slots(160, 2) == 1);   // 50 + 10 + 100
  CHECK(need.most_slots(270, 2) == 2);   // 50 + 20 + 200
  CHECK(need.most_slots(300, 2) == 5);   // 50 + 50 + 200
  CHECK(need.most_slots(300, 99) == 2);  // 50 + 20 + 200, all at work
  for (const std::int64_t room : {160, 270, 300, 1000}) {
    const auto most = static_cast<int>(need.most_slots(room, 2));
    CHECK(need.total(most, std::min(most, 2)) <= room);
    CHECK(need.total(most + 1, std::min(most + 1, 2)) > room);
  }
}

TEST_CASE("what an array holds is what was predicted, but for what is worked in") {
  const std::string optimizer = GENERATE("sgd", "adam");
  SystemFiles files;
  const SystemClock clock;
  FusedTrainer trainer({config(optimizer), "cpu", "cpu", 1, hfta::testing::source_folder() / "data", ""}, files, clock);
  const trials::Params params = {{"lr", 0.05}};
  trainer.check(params);
  const auto array = trainer.open(params, 4, 0, never);
  const auto before = nlohmann::json::parse(array->info().choices_json);
  const std::int64_t weights = 4 * (64 * 32 + 32 + 32 * 10 + 10);
  const std::int64_t states = optimizer == "sgd" ? 1 : 2;
  const auto predicted = before["predicted"]["bytes"].get<std::int64_t>();
  const auto held = before["held_bytes"].get<std::int64_t>();
  CHECK(held >= 4 * (1 + states) * weights);
  CHECK(held <= predicted);
  CHECK(predicted >= (4 * (1 + states) + 2) * weights);  // gradients are those of two at work
  const PreparedTask task = trainer.prepare(params);
  CHECK(predicted == *trainer.plan(params).bytes(4));
  CHECK(trainer.plan(params).memory->slot == (1 + states) * weights);  // gradients lie in the arenas
  CHECK(memory_need(task.graph, task.spec.recipe, {}, 1000).shared == 1000);
  for (int slot = 0; slot < 4; ++slot) array->admit(slot, slot, params);
  static_cast<void>(array->run_epoch(never));
  const std::string after = array->info().choices_json;
  static_cast<void>(array->run_epoch(never));
  CHECK(array->info().choices_json == after);  // or the store's row would be written at every round
}

}  // namespace hfta::engine
