#include "fusion/threads/team.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/pause.hpp"
#include "base/threads.hpp"

namespace hfta::fusion {
namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();  // stretches at a time
constexpr std::uint32_t kEnded = kMost << 16;                               // first above last

// Looks before a thread sleeps. A pause takes 15 to 60 ns, so that is 150 to 600 us: longer than what one thread does
// alone between two kernels that are shared. A thread that sleeps is woken on its waker's core where the others are
// busy, and then gets no share of the work for milliseconds. A step of a Transformer (W5 of bench/README.md, by
// `hfta_bench_step --profile --threads 2` on two cores with 28 other processes) took 6.1 ms with 1,000 looks, 5.5 ms
// with 4,000, and 3.8 ms with 10,000.
constexpr int kLooks = 10000;

std::uint32_t first_of(std::uint32_t left) { return left >> 16; }
std::uint32_t last_of(std::uint32_t left) { return left & kMost; }

// Returns when `value` is no longer `old`, which it looks at for a while before it sleeps.
std::uint32_t changed(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int look = 0; look < kLooks; ++look) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_in_loop();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

// One call of share() at a time.
class Team::Busy {
 public:
  explicit Busy(Team& team) : team_(team) {
    if (team_.busy_.exchange(true)) {
      throw Error(ErrorKind::kInternal, "team: found work that shares work of its own, wanted one kernel at a time");
    }
  }
  ~Busy() { team_.busy_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Team& team_;
};

Team::Team(int threads)
    : helpers_(start_threads(
          threads - 1, [this](int helper) { serve(helper + 1); }, [this] { end(); })) {}

Team::~Team() {
  end();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::end() {
  left_.store(kEnded);
  left_.notify_all();
}

void Team::run(std::int64_t n, const Call& call) {
  const Busy busy(*this);
  ++shared_;
  call_ = call;
  failure_ = nullptr;
  mode_ = simd::DenormalMode();
  for (std::int64_t first = 0; first < n; first += kMost) {
    run_some(first, static_cast<std::uint32_t>(std::min<std::int64_t>(n - first, kMost)));
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::run_some(std::int64_t first, std::uint32_t count) {
  offset_ = first;
  unfinished_.store(count, std::memory_order_relaxed);
  left_.store(count);  // [0, count); in the one order of all, before the look for sleepers
  left_.notify_all();
  while (take(0)) {
  }
  wait_until_done();
}

// Runs one stretch; false if none is left.
bool Team::take(int thread) {
  std::uint32_t left = left_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint32_t first = first_of(left), last = last_of(left);
    if (first >= last) return false;
    const bool from_front = thread == 0;
    const std::uint32_t after = from_front ? (first + 1) << 16 | last : first << 16 | (last - 1);
    if (!left_.compare_exchange_weak(left, after, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    do_stretch(from_front ? first : last - 1, thread);
    return true;
  }
}

void Team::do_stretch(std::uint32_t stretch, int thread) {
  const std::int64_t number = offset_ + stretch;
  try {
    if (thread == 0) {
      call_.function(call_.what, number, thread);
    } else {
      const simd::DenormalMode::Assumed like_the_caller(mode_);
      call_.function(call_.what, number, thread);
    }
  } catch (...) {
    const std::lock_guard lock(failing_);
    if (!failure_ || number < failed_) {
      failure_ = std::current_exception();
      failed_ = number;
    }
  }
  if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_one();
}

void Team::wait_until_done() {
  std::uint32_t unfinished = unfinished_.load(std::memory_order_acquire);
  while (unfinished != 0) unfinished = changed(unfinished_, unfinished);
}

void Team::serve(int thread) {
  for (std::uint32_t left = 0; left != kEnded;) {
    if (take(thread)) continue;
    left = left_.load(std::memory_order_acquire);
    if (left != kEnded && first_of(left) >= last_of(left)) left = changed(left_, left);
  }
}

}  // namespace hfta::fusion
