// A device of several ranks: fake trainers, a thread for each rank behind the first.
#include "engine/parallel/parallel_trainer.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hpp"
#include "engine/parallel/serve.hpp"
#include "fake_trainer.hpp"
#include "fusion/data/safetensors.hpp"

namespace hfta::engine::testing {
namespace {

const trials::Params kParams = {{"lr", 0.1}, {"hidden", std::int64_t{8}}};

constexpr std::chrono::seconds kSoon(20);
constexpr int kEndless = 1 << 30;  // steps of an epoch, which ends with the channel

// Ends a rank as a signal does. No std::exception, which it would answer with.
struct WithoutAWord {};

// A rank in a thread, which ends with its channel.
class MemberThread final : public Member {
 public:
  static std::unique_ptr<Member> made(World& world) {
    auto [own, its] = make_stream();
    return std::make_unique<MemberThread>(Channel(std::move(own)), Channel(std::move(its)), world);
  }
  MemberThread(Channel own, Channel its, World& world)
      : Member(std::move(own)), thread_([channel = std::move(its), &world]() mutable {
          FakeTrainer trainer(world, "cpu");
          const Faults none;
          try {
            serve(channel, trainer, none);
          } catch (const Error&) {  // nobody hears it any more
          } catch (const WithoutAWord&) {
          }
        }) {}
  ~MemberThread() override {
    channel() = Channel(Descriptor());
    thread_.join();
  }
  std::string ended() override { return "a thread that has ended"; }

 private:
  std::thread thread_;
};

struct Device {
  World own;
  std::vector<std::unique_ptr<World>> others;
  int started = 0;
  std::unique_ptr<ParallelTrainer> trainer;

  [[nodiscard]] std::vector<World*> worlds() {
    std::vector<World*> all = {&own};
    for (const auto& world : others) all.push_back(world.get());
    return all;
  }

  explicit Device(int ranks, Divide divide = Divide::kEvenBatches) {
    for (int r = 1; r < ranks; ++r) others.push_back(std::make_unique<World>());
    const auto start = [this] {
      ++started;
      Members members;
      for (const auto& world : others) members.push_back(MemberThread::made(*world));
      return members;
    };
    trainer = std::make_unique<ParallelTrainer>(std::make_unique<FakeTrainer>(own, "cpu"), start, ranks, "cpu:1+cpu:1",
                                                divide, [](const trials::Params&) { return "hidden=8"; });
  }
};

// "" where nothing is thrown.
std::string error_of(const std::function<void()>& work, ErrorKind wanted) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.kind() == wanted);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("all ranks open, fill, run and empty their arrays as the first does") {
  const int ranks = GENERATE(2, 4);
  Device device(ranks);
  CHECK(device.trainer->device_facts().speed == ranks);
  static_cast<void>(device.trainer->plan(kParams));
  CHECK(device.started == 0);
  SlotState state;
  {
    const auto array = device.trainer->open(kParams, 3, 10, never);
    CHECK(device.started == 1);
    array->admit(0, 0, kParams);
    array->admit(1, 1, kParams);
    REQUIRE(array->run_epoch(never));
    state = array->extract(1);
    array->clear(1);
    array->resize(2);
    array->insert(1, 1, kParams, state);
    const auto reports = array->run_epoch(never);
    REQUIRE(reports);
    CHECK(reports->size() == 2);
    CHECK(reports->at(1).epoch == 2);
    CHECK_FALSE(array->test(0).empty());
  }
  const auto again = device.trainer->open(kParams, 1, 10, never);
  CHECK(device.started == 1);
  for (const auto& world : device.others) {
    CHECK(world->opens == 2);
    CHECK(world->admits == 2);
    CHECK(world->inserts == 1);
    CHECK(world->resizes == 1);
    CHECK(world->runs == 2);
    CHECK(world->extracts == 0);
    CHECK(world->tests == 0);
    CHECK(world->recalled.contains("hidden=8"));
  }
}

TEST_CASE("ranks that are stages take part in states and metrics, and nothing is timed") {
  Device device(3, Divide::kStages);
  device.own.width = 3;
  const auto array = device.trainer->open(kParams, 3, 10, never);
  REQUIRE(device.own.ranks);
  CHECK(device.own.ranks->chosen == plan_of_stages(3).division);
  CHECK(device.own.ranks->plans == std::vector{plan_of_stages(3)});
  CHECK(device.own.ranks->width == 3);
  array->admit(0, 0, kParams);
  array->admit(1, 1, kParams);
  REQUIRE(array->run_epoch(never));
  const SlotState state = array->extract(1);
  array->clear(1);
  array->insert(1, 1, kParams, state);
  REQUIRE(array->run_epoch(never)->size() == 2);
  CHECK_FALSE(array->test(0).empty());
  CHECK(array->info().threads == 3);
  static_cast<void>(device.trainer->open(kParams, 1, 10, never));
  for (const auto& world : device.others) {
    CHECK(world->opens == 2);
    CHECK(world->admits == 2);
    CHECK(world->inserts == 1);
    CHECK(world->runs == 2);
    CHECK(world->extracts == 1);
    CHECK(world->tests == 1);
  }
  for (World* world : device.worlds()) CHECK((world->tries == 0 && world->timed.empty()));
}

TEST_CASE("ranks that share slots train, report, pause and test as one array does") {
  const int ranks = GENERATE(2, 3);
  constexpr int kWidth = 7;
  Device device(ranks, Divide::kSlots);
  World alone;
  for (World* world : {&alone, &device.own}) world->steps = 3;
  for (const auto& world : device.others) world->steps = 3;
  device.own.rank_speed = 2;
  device.own.width = kWidth;
  FakeTrainer one(alone, "cpu");
  const auto wanted = one.open(kParams, kWidth, 10, never), array = device.trainer->open(kParams, kWidth, 10, never);
  CHECK(device.own.ranks->chosen.parts == (ranks == 2 ? std::vector{5, 2} : std::vector{4, 2, 1}));
  const auto both = [&](const std::function<void(TrainerArray&)>& call) {
    call(*wanted);
    call(*array);
  };
  both([](TrainerArray& a) {
    for (int slot = 0; slot < kWidth; ++slot) a.admit(slot, slot, kParams);
  });
  const auto run = [](TrainerArray& a, const Pause& pause) {
    std::vector<std::pair<int, std::map<std::string, double>>> found;
    const auto reports = a.run_epoch(pause);
    if (!reports) return found;
    for (const SlotReport& report : *reports) found.emplace_back(report.slot, report.metrics);
    return found;
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto expected = run(*wanted, never);
    CHECK(expected.size() == (epoch == 0 ? 7 : epoch == 1 ? 5 : 6));
    int asked = 0;
    auto found = run(*array, [&] { return epoch > 0 && ++asked > 1; });
    if (found.empty()) found = run(*array, never);  // else a member had ended its epoch before the pause
    CHECK(found == expected);
    for (int slot = 0; slot < kWidth; ++slot) {
      if (epoch > 0 && (slot == 1 || slot == 6)) continue;
      CHECK(array->test(slot) == wanted->test(slot));
      CHECK(array->extract(slot) == wanted->extract(slot));
    }
    if (epoch == 0) both([](TrainerArray& a) { a.clear(1), a.clear(6); });
    if (epoch == 1) both([](TrainerArray& a) { a.resize(6), a.admit(1, 11, kParams); });
    if (epoch == 1) CHECK(array->info().width == 6);
  }
  for (const auto& world : device.others) CHECK(world->runs > 0);
}

TEST_CASE("a pause behind the end of a member's epoch comes to nothing: the others end theirs") {
  Device device(2, Divide::kSlots);
  device.own.steps = 3;
  std::atomic<bool> ended = false;
  device.others[0]->after_epochs = [&](int) { ended = true; };
  const auto array = device.trainer->open(kParams, 2, 10, never);
  array->admit(0, 0, kParams);
  array->admit(1, 1, kParams);
  const auto reports = array->run_epoch([&] {
    while (!ended) std::this_thread::yield();
    return true;
  });
  REQUIRE(reports);
  REQUIRE(reports->size() == 2);
  CHECK(reports->at(0).epoch == 1);
  CHECK(reports->at(1).epoch == 1);
}

TEST_CASE("where only members have trials they are asked to pause, and where nobody has there is no report") {
  Device device(2, Divide::kSlots);
  device.others[0]->rank_speed = 100;  // gets all slots
  device.others[0]->steps = 1000000;
  device.own.width = 2;
  const auto array = device.trainer->open(kParams, 2, 10, never);
  CHECK(device.own.ranks->chosen.parts == std::vector{0, 2});
  REQUIRE(array->run_epoch(never));
  CHECK(array->run_epoch(never)->empty());
  array->admit(0, 0, kParams);
  CHECK_FALSE(array->run_epoch([] { return true; }));
  CHECK(array->run_epoch(never)->size() == 1);
}

TEST_CASE("how ranks share is found out once, tried, and kept") {
  Device device(2, Divide::kAuto);
  device.own.exchange = 1e-5;
  device.own.width = 1;
  static_cast<void>(device.trainer->open(kParams, 1, 10, never));
  CHECK(device.own.tries == 2);
  CHECK(device.own.ranks->chosen == Division{Division::Of::kBatches, {1, 1}});
  CHECK(device.own.ranks->plans.size() == 2);
  static_cast<void>(device.trainer->open(kParams, 1, 10, never));
  CHECK(device.own.tries == 2);
  CHECK(device.others[0]->tries == 2);
  device.own.ranks.reset();
  device.own.undivided = "a batch norm";
  device.own.width = 4;
  static_cast<void>(device.trainer->open(kParams, 4, 10, never));
  CHECK(device.own.ranks->chosen == Division{Division::Of::kSlots, {2, 2}});
  CHECK(device.others[0]->timed == std::vector<std::size_t>{2, 1});  // no part of a batch that cannot be divided
}

TEST_CASE("ranks share as suits the width that is planned, whatever the first array's is") {
  const Division slots{Division::Of::kSlots, {4, 3}}, older{Division::Of::kSlots, {1, 0}},
      batches{Division::Of::kBatches, {2, 1}}, stages{Division::Of::kStages, {1, 1}};
  struct Case {
    const char* what;
    Divide divide;
    std::optional<RankPlans> known;
    bool batches_whole;
    double exchange;
    Division chosen;
  };
  const double free = 0, dear = 1;  // to exchange: batches are faster, or slots
  const Case cases[] = {
      {"one trial waits", Divide::kSlots, {}, false, dear, slots},
      {"known of another width: slots stay slots", Divide::kAuto, RankPlans{older, {}, 1}, false, free, slots},
      {"known from before widths were kept", Divide::kAuto, RankPlans{older, {}, 0}, false, free, slots},
      {"known of this width", Divide::kAuto, RankPlans{older, {}, 7}, false, free, older},
      {"batches stay as they were", Divide::kAuto, RankPlans{batches, {}, 1}, false, dear, batches},
      {"a study that has trained whole batches goes on so", Divide::kAuto, {}, true, free, slots},
      {"stages are known as well", Divide::kStages, RankPlans{stages, {}, 1}, false, dear, stages},
      {"unless it is told otherwise", Divide::kBatches, {}, true, free, {Division::Of::kBatches, {1, 1}}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    Device device(2, c.divide);
    device.own.ranks = c.known;
    device.own.batches_whole = c.batches_whole;
    device.own.exchange = c.exchange;
    device.own.width = 7;
    static_cast<void>(device.trainer->open(kParams, 1, 10, never));
    CHECK(device.own.ranks->chosen == c.chosen);
    const bool decided = !c.known || c.known->chosen != c.chosen;
    CHECK((device.own.tries > 0) == decided);
    if (decided) CHECK(device.own.ranks->width == 7);
  }
}

TEST_CASE("what a pause cuts short is chosen by prediction, and known to be cut short") {
  for (const int tries : {0, 1, 2}) {
    Device device(2, Divide::kAuto);
    device.own.exchange = 1;
    static_cast<void>(device.trainer->open(kParams, 1, 10, [&] { return device.own.tries >= tries; }));
    CHECK(device.own.tries == tries);
    CHECK(device.own.cut_short);
    CHECK(device.own.ranks->chosen.to_text() == "slots 4:4");
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK((device.own.ranks->plans[i].tried_seconds > 0) == (static_cast<int>(i) < tries));
    }
  }
}

TEST_CASE("times that are not those that were asked for are an error") {
  struct Case {
    int slots;
    std::int64_t batch;
    std::string told;
  };
  const Case cases[] = {{-5, 60, "rank 1: found times of 3 slots, wanted 8"},
                        {0, 50, "rank 1: found no time of a batch of 15 samples, wanted one as of rank 0"}};
  for (const Case& c : cases) {
    Device device(2, Divide::kAuto);
    device.others[0]->unlike_slots = c.slots;
    device.others[0]->rank_batch = c.batch;
    CHECK(error_of([&] { static_cast<void>(device.trainer->open(kParams, 1, 10, never)); }, ErrorKind::kInternal) ==
          "cpu:1+cpu:1: " + c.told);
  }
}

TEST_CASE("an error of a rank that has slots of its own is the device's") {
  Device device(2, Divide::kSlots);
  const auto array = device.trainer->open(kParams, 2, 10, never);
  array->admit(0, 0, kParams);
  array->admit(1, 1, kParams);
  device.others[0]->before_epoch = [](const std::string&) { throw Error(ErrorKind::kMemory, "smoke"); };
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kDevice) ==
        "cpu:1+cpu:1: rank 1: smoke; a smaller array.width needs less memory");
  CHECK(error_of([&] { static_cast<void>(array->extract(1)); }, ErrorKind::kDevice) ==
        "cpu:1+cpu:1 is lost: rank 1: smoke; a smaller array.width needs less memory");
}

TEST_CASE("a rank that has met an error ends, so that nobody waits for it in the group") {
  World world;
  const auto member = MemberThread::made(world);
  member->channel().send({{"call", "levitate"}});
  REQUIRE(member->channel().comes_within(kSoon));
  CHECK(member->channel().receive()->at("error") ==
        "found the request 'levitate', wanted one of this version of "
        "hfta-tune");
  REQUIRE(member->channel().comes_within(kSoon));
  CHECK_FALSE(member->channel().receive());
}

TEST_CASE("of what ranks say of a loss a member's own error is told, then how one has ended") {
  struct Case {
    std::vector<ErrorKind> kinds;  // of each member; kBusy: it ends without a word
    std::string told;
  };
  const Case cases[] = {
      {{ErrorKind::kDevice, ErrorKind::kInternal}, "rank 2: smoke"},
      {{ErrorKind::kBusy, ErrorKind::kConfig}, "rank 2: smoke"},
      {{ErrorKind::kDevice, ErrorKind::kBusy}, "rank 2: a thread that has ended"},
      {{ErrorKind::kDevice, ErrorKind::kDevice}, "rank 1: smoke"},
  };
  for (const Case& c : cases) {
    Device device(3);
    const auto array = device.trainer->open(kParams, 1, 10, never);
    array->admit(0, 0, kParams);
    device.own.before_epoch = [](const std::string&) { throw Error(ErrorKind::kDevice, "somebody has ended"); };
    for (std::size_t r = 0; r < 2; ++r) {
      device.others[r]->before_epoch = [kind = c.kinds[r]](const std::string&) {
        if (kind == ErrorKind::kBusy) throw WithoutAWord();
        throw Error(kind, "smoke");
      };
    }
    CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kDevice) ==
          "cpu:1+cpu:1: " + c.told);
  }
}

TEST_CASE("members that are busy when the device is lost are waited for together") {
  constexpr int kRanks = 9;
  Device device(kRanks, Divide::kSlots);
  for (const auto& world : device.others) world->steps = kEndless;
  const auto array = device.trainer->open(kParams, kRanks, 10, never);
  for (int slot = 0; slot < kRanks; ++slot) array->admit(slot, slot, kParams);
  device.own.before_epoch = [](const std::string&) { throw Error(ErrorKind::kDevice, "smoke"); };
  const auto began = std::chrono::steady_clock::now();
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kDevice) == "cpu:1+cpu:1: smoke");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(12));  // 2 s; 16 s, one after another
}

TEST_CASE("a member that ends while rank 0 trains slots of its own, or none, is missed at once") {
  const bool only_members = GENERATE(false, true);
  Device device(3, Divide::kSlots);
  for (World* world : device.worlds()) world->steps = kEndless;
  device.own.width = 3;
  if (only_members) device.others[0]->rank_speed = device.others[1]->rank_speed = 100;  // get all slots
  const auto array = device.trainer->open(kParams, 3, 10, never);
  for (int slot = 0; slot < 3; ++slot) array->admit(slot, slot, kParams);
  device.others[1]->before_epoch = [](const std::string&) { throw WithoutAWord(); };
  constexpr int kLate = 2000;
  int asked = 0;
  const auto slowly = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ++asked > kLate;
  };
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(slowly)); }, ErrorKind::kDevice) ==
        "cpu:1+cpu:1: rank 2: a thread that has ended");
  CHECK(asked < kLate);
}

TEST_CASE("a state that does not fit costs no device, whichever rank finds that") {
  const Divide divide = GENERATE(Divide::kSlots, Divide::kEvenBatches, Divide::kStages);
  Device device(2, divide);
  const auto array = device.trainer->open(kParams, 2, 10, never);
  array->admit(0, 0, kParams);
  REQUIRE(array->run_epoch(never));
  const SlotState good = array->extract(0);
  const std::vector<fusion::TensorView> tensors = {{"optimizer.momentum_buffer.weight", "U8", {0}, {}},
                                                   {"weight", "U8", {0}, {}}};
  const SlotState other = fusion::write_safetensors(tensors, {});
  array->clear(0);
  for (int slot = 0; slot < 2; ++slot) {
    const bool member = divide == Divide::kSlots && slot == 1;
    CHECK(error_of([&] { array->insert(slot, 0, kParams, other); }, ErrorKind::kStorage) ==
          (member ? "rank 1: slot state: a state of another size" : "slot state: a state of another size"));
    array->insert(slot, 0, kParams, good);
  }
  CHECK(array->run_epoch(never)->size() == 2);
}

TEST_CASE("a device whose members could not be started is lost") {
  World own;
  const auto start = []() -> Members { throw Error(ErrorKind::kDevice, "no more processes"); };
  ParallelTrainer trainer(std::make_unique<FakeTrainer>(own, "cpu"), start, 2, "cpu:1+cpu:1", Divide::kAuto,
                          [](const trials::Params&) { return "hidden=8"; });
  const auto open = [&] { static_cast<void>(trainer.open(kParams, 1, 10, never)); };
  CHECK(error_of(open, ErrorKind::kDevice) == "cpu:1+cpu:1: no more processes");
  CHECK(error_of(open, ErrorKind::kDevice) == "cpu:1+cpu:1 is lost: no more processes");
}

TEST_CASE("an error of a rank is the device's, and the device is lost") {
  const ErrorKind kind = GENERATE(ErrorKind::kDevice, ErrorKind::kInternal);
  const bool first = GENERATE(false, true);
  Device device(3);
  const auto array = device.trainer->open(kParams, 1, 10, never);
  array->admit(0, 0, kParams);
  (first ? device.own : *device.others[1]).before_epoch = [&](const std::string&) { throw Error(kind, "smoke"); };
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, kind) ==
        (first ? "cpu:1+cpu:1: smoke" : "cpu:1+cpu:1: rank 2: smoke"));
  const std::string lost = first ? "cpu:1+cpu:1 is lost: smoke" : "cpu:1+cpu:1 is lost: rank 2: smoke";
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kDevice) == lost);
  CHECK(error_of([&] { static_cast<void>(device.trainer->open(kParams, 1, 1, never)); }, ErrorKind::kDevice) == lost);
}

TEST_CASE("ranks whose losses differ are an error") {
  Device device(2, GENERATE(Divide::kEvenBatches, Divide::kStages));
  device.others[0]->diverge = {-1};
  const auto array = device.trainer->open(kParams, 1, 10, never);
  array->admit(0, 0, kParams);
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kInternal) ==
        "cpu:1+cpu:1: rank 1: found other training losses than rank 0 has");
  device.others[0]->diverge.clear();
}

}  // namespace hfta::engine::testing
