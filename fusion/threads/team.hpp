#pragma once
/// A thread and its helpers, which share the work of one kernel.
///
/// Work is cut into stretches. How it is cut is a function of the problem, never of the team, and each stretch writes
/// what no other one writes, so results are equal bits whoever runs which stretch, and however many they are.

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "fusion/simd/denormals.hpp"

namespace hfta::fusion {

/// Its helpers live as long as it does. A helper that finds nothing to do looks again for some hundred microseconds and
/// then sleeps. Nothing is allocated after the constructor. One thread at a time may call share().
class Team {
 public:
  /// `threads`: the caller's included; at least 1. Throws Error{kDevice} where a helper cannot be started.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(helpers_.size()) + 1; }
  /// How often share() was called: tests see that a kernel is shared.
  [[nodiscard]] std::int64_t shared() const { return shared_; }

  /// Runs work(stretch, thread) for every stretch in [0, n), and returns when all are done. `thread` is 0 for the
  /// caller and less than threads() for all: the place of scratch memory. A stretch belongs to whoever comes first: the
  /// caller takes them from the front, helpers from the back, so that a thread mostly gets the same part of the data
  /// in kernel after kernel. Helpers treat denormal numbers as the caller does. The exception of the lowest stretch
  /// that throws is rethrown when all are done. Throws Error{kInternal} if called from within work.
  template <typename Work>
  void share(std::int64_t n, const Work& work) {
    run(n,
        {[](const void* what, std::int64_t stretch, int thread) { (*static_cast<const Work*>(what))(stretch, thread); },
         &work});
  }

 private:
  struct Call {
    void (*function)(const void* what, std::int64_t stretch, int thread) = nullptr;
    const void* what = nullptr;
  };
  class Busy;
  void run(std::int64_t n, const Call& call);
  void run_some(std::int64_t first, std::uint32_t count);
  [[nodiscard]] bool take(int thread);
  void do_stretch(std::uint32_t stretch, int thread);
  void wait_until_done();
  void serve(int thread);
  void end();

  // The work that is left, [first, last) as two halves; nothing where they are equal, the end of the team where
  // first is above last. Whoever changes it by a compare-and-swap owns the stretch that is gone. That the work may be
  // another one by then, with as much left, does no harm: what is read of the work is read behind the swap.
  alignas(64) std::atomic<std::uint32_t> left_ = 0;
  alignas(64) std::atomic<std::uint32_t> unfinished_ = 0;  // stretches, of [first, last) and under way
  // The work: written while nothing is left, read by owners of stretches.
  alignas(64) Call call_;
  std::int64_t offset_ = 0;  // of stretch 0
  std::int64_t shared_ = 0;
  simd::DenormalMode mode_;
  std::atomic<bool> busy_ = false;
  std::mutex failing_;
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;
  std::vector<std::thread> helpers_;
};

/// team->share(n, work); without a team, or where there is but one stretch, the caller does all of it, as thread 0.
template <typename Work>
void share(Team* team, std::int64_t n, const Work& work) {
  if (team != nullptr && n > 1) return team->share(n, work);
  for (std::int64_t stretch = 0; stretch < n; ++stretch) work(stretch, 0);
}

/// Whether the team's threads, or the caller alone, have something to do four fifths of the time where each does one of
/// n equal pieces of work after the other.
[[nodiscard]] inline bool keeps_busy(const Team* team, std::int64_t n) {
  if (team == nullptr) return true;
  const std::int64_t threads = team->threads(), rounds = (n + threads - 1) / threads;
  return 5 * n >= 4 * rounds * threads;
}

/// A range of items cut into stretches of equal length; the last one may be shorter.
struct Stretches {
  std::int64_t items = 0, length = 1;

  [[nodiscard]] std::int64_t count() const { return (items + length - 1) / length; }
  [[nodiscard]] std::int64_t begin(std::int64_t stretch) const { return stretch * length; }
  [[nodiscard]] std::int64_t size(std::int64_t stretch) const {
    return stretch * length + length < items ? length : items - stretch * length;
  }
};

/// Work that a stretch holds at least, in elements that a simple loop reads and writes.
inline constexpr std::int64_t kStretchElements = 16384;
/// Work that a stretch of products holds at least, in multiplications.
inline constexpr std::int64_t kStretchProducts = 262144;

/// Stretches of whole multiples of `unit` items, each of which has `each` elements.
[[nodiscard]] inline Stretches stretches_of(std::int64_t items, std::int64_t each, std::int64_t unit = 1,
                                            std::int64_t least = kStretchElements) {
  const std::int64_t of_unit = each * unit > 0 ? each * unit : 1;
  return {items, unit * ((least + of_unit - 1) / of_unit)};
}

/// share() of a range: work(begin, size, thread).
template <typename Work>
void share(Team* team, const Stretches& stretches, const Work& work) {
  share(team, stretches.count(),
        [&](std::int64_t stretch, int thread) { work(stretches.begin(stretch), stretches.size(stretch), thread); });
}

}  // namespace hfta::fusion
