// A device of several ranks: fake trainers, a thread for each rank behind the first.
#include "engine/parallel/parallel_trainer.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "engine/parallel/serve.hpp"
#include "fake_trainer.hpp"

namespace hfta::engine::testing {
namespace {

const trials::Params kParams = {{"lr", 0.1}, {"hidden", std::int64_t{8}}};

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

  explicit Device(int ranks) {
    for (int r = 1; r < ranks; ++r) others.push_back(std::make_unique<World>());
    const auto start = [this] {
      ++started;
      Members members;
      for (const auto& world : others) members.push_back(MemberThread::made(*world));
      return members;
    };
    trainer = std::make_unique<ParallelTrainer>(std::make_unique<FakeTrainer>(own, "cpu"), start, ranks, "cpu:1+cpu:1",
                                                [](const trials::Params&) { return "hidden=8"; });
  }
};

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

TEST_CASE("an error of a rank is the device's, and the device is lost") {
  const ErrorKind kind = GENERATE(ErrorKind::kDevice, ErrorKind::kMemory);
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
  Device device(2);
  device.others[0]->diverge = {-1};
  const auto array = device.trainer->open(kParams, 1, 10, never);
  array->admit(0, 0, kParams);
  CHECK(error_of([&] { static_cast<void>(array->run_epoch(never)); }, ErrorKind::kInternal) ==
        "cpu:1+cpu:1: rank 1: found other training losses than rank 0 has");
  device.others[0]->diverge.clear();
}

}  // namespace hfta::engine::testing
