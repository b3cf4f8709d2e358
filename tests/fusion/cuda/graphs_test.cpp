// fusion/cuda/graphs.cpp on a fake LibTorch: whatever fails in a capture, memory pools end with as many users as
// they began with, and the next capture succeeds.
#include "fusion/cuda/graphs.cpp"  // NOLINT: compiled against fake/

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace hfta::fusion::cuda {
namespace {

using fake_cuda::Fail;

std::unique_ptr<StepGraphBackend> backend() { return std::unique_ptr<StepGraphBackend>(hfta_make_cuda_graphs()); }

const c10::Device kGpu(c10::kCUDA, 0);

bool pools_are_balanced() {
  const fake_cuda::State& state = fake_cuda::state;
  return state.device.given_back_too_often == 0 && state.host.given_back_too_often == 0;
}

bool pools_are_idle() { return fake_cuda::state.device.idle() && fake_cuda::state.host.idle(); }

void nothing() {}

}  // namespace

TEST_CASE("a capture that fails leaves nothing behind, wherever it fails") {
  const Fail fail =
      GENERATE(Fail::kNowhere, Fail::kBegin, Fail::kEnd, Fail::kInvalid, Fail::kInstantiate, Fail::kInstantiateMemory);
  const bool work_throws = GENERATE(false, true), one_before = GENERATE(false, true);
  INFO("fails at " << static_cast<int>(fail) << (work_throws ? ", the work throws" : "")
                   << (one_before ? ", another graph of the lane lives" : ""));
  {
    const auto graphs = backend();
    const auto lane = graphs->open_recorder(kGpu);
    std::unique_ptr<StepGraph> before;
    if (one_before) before = lane->capture(nothing);
    fake_cuda::state.fail = fail;
    const auto work = [&] {
      if (work_throws) throw std::runtime_error("the step itself");
    };
    if (fail != Fail::kNowhere && !work_throws) CHECK_THROWS_AS(lane->capture(work), c10::Error);
    if (work_throws && fail == Fail::kBegin) CHECK_THROWS_AS(lane->capture(work), c10::Error);
    if (work_throws && fail != Fail::kBegin) CHECK_THROWS_WITH(lane->capture(work), "the step itself");
    fake_cuda::state.fail = Fail::kNowhere;
    CHECK(pools_are_balanced());
    const auto after = lane->capture(nothing);
    const int replayed = fake_cuda::state.replayed;
    after->replay();
    CHECK(fake_cuda::state.replayed == replayed + 1);
    CHECK(fake_cuda::state.capturing == 0);
  }
  CHECK(pools_are_balanced());
  CHECK(pools_are_idle());
}

TEST_CASE("a graph is not destroyed while another is captured") {
  const auto graphs = backend();
  const auto one = graphs->open_recorder(kGpu), other = graphs->open_recorder(kGpu);
  std::unique_ptr<StepGraph> old = one->capture(nothing);
  std::atomic<bool> begun = false;
  std::thread evicts([&] {
    while (!begun) std::this_thread::yield();
    old.reset();
  });
  static_cast<void>(other->capture([&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }));
  evicts.join();
  CHECK(fake_cuda::state.destroyed_while_capturing == 0);
}

TEST_CASE("after a capture that ran out of memory the next one finds the cache empty") {
  const bool in_the_step = GENERATE(false, true);
  const auto graphs = backend();
  const auto lane = graphs->open_recorder(kGpu);
  fake_cuda::state.fail = in_the_step ? Fail::kNowhere : Fail::kInstantiateMemory;
  const auto work = [&] { TORCH_CHECK_WITH(OutOfMemoryError, !in_the_step, "CUDA out of memory"); };
  CHECK_THROWS_AS(lane->capture(work), c10::OutOfMemoryError);
  fake_cuda::state.fail = Fail::kNowhere;
  CHECK(pools_are_balanced());
  const int emptied = fake_cuda::state.emptied;
  static_cast<void>(lane->capture([&] { CHECK(fake_cuda::state.emptied == emptied + 1); }));
  static_cast<void>(lane->capture([&] { CHECK(fake_cuda::state.emptied == emptied + 1); }));
}

TEST_CASE("a lane's stream is its own as long as it lives, and used again") {
  const auto graphs = backend();
  const auto streams_of_100 = [&] {
    std::vector<std::unique_ptr<StepGraphRecorder>> lanes;
    for (int i = 0; i < 100; ++i) lanes.push_back(graphs->open_recorder(kGpu));
    std::set<c10::StreamId> streams;
    for (const auto& lane : lanes) streams.insert(lane->stream()->id());
    return streams;
  };
  const std::set<c10::StreamId> first = streams_of_100();
  CHECK(first.size() == 100);
  CHECK(streams_of_100() == first);
  CHECK(graphs->open_recorder(c10::Device(c10::kCUDA, 1))->stream()->device_index() == 1);
}

// As every trainer and every embedder makes one.
TEST_CASE("lanes of two backends on one device have streams of their own, and take turns to capture") {
  const auto one = backend(), other = backend();
  const auto here = one->open_recorder(kGpu), there = other->open_recorder(kGpu);
  CHECK(here->stream()->id() != there->stream()->id());
  std::unique_ptr<StepGraph> old = here->capture(nothing);
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  std::atomic<bool> begun = false;
  std::thread captures([&] {
    while (!begun) std::this_thread::yield();
    old.reset();
    static_cast<void>(here->capture(slow));
  });
  static_cast<void>(there->capture([&] {
    begun = true;
    slow();
  }));
  captures.join();
  CHECK(fake_cuda::state.captured_at_once == 0);
  CHECK(fake_cuda::state.destroyed_while_capturing == 0);
  CHECK(pools_are_balanced());
}

TEST_CASE("a capture has the process to itself: it waits for ops of other lanes, and they for it") {
  const auto graphs = backend();
  const auto first = graphs->open_recorder(kGpu), second = graphs->open_recorder(kGpu);
  std::atomic<int> under_way = 0, together = 0, met = 0;
  const auto alone = [&] {
    if (++under_way > 1) ++together;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --under_way;
  };
  // Ops may run beside ops.
  const auto beside = [&] {
    ++met;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (met < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  };
  std::thread other([&] { second->run(beside); });
  first->run(beside);
  other.join();
  CHECK(met == 2);
  std::thread capturing([&] {
    for (int i = 0; i < 20; ++i) static_cast<void>(first->capture(alone));
  });
  for (int i = 0; i < 20; ++i) second->run(alone);
  capturing.join();
  CHECK(together == 0);
}

TEST_CASE("LibTorch's warnings about ops of a lane are not shown") {
  const auto lane = backend()->open_recorder(kGpu);
  int shown = 0;
  class Counts final : public c10::WarningHandler {
   public:
    explicit Counts(int& all) : all_(all) {}
    void process(const c10::Warning& /*warning*/) override { ++all_; }

   private:
    int& all_;
  } counts(shown);
  const c10::WarningUtils::WarningHandlerGuard guard(&counts);
  lane->run([] { TORCH_WARN("weights are not in one piece"); });
  CHECK(shown == 0);
  TORCH_WARN("after it");
  CHECK(shown == 1);
}

}  // namespace hfta::fusion::cuda
