#pragma once
/// Turns that many threads take: so many at a time, in the order in which they came.

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace hfta::fusion {

class Turns {
 public:
  explicit Turns(int at_a_time) : free_(at_a_time) {}

  /// A turn, until its end.
  class Turn {
   public:
    /// Waits for it. `first`: before all those that wait without it.
    explicit Turn(Turns& turns, bool first = false) : turns_(turns) { first ? turns_.begin_first() : turns_.begin(); }
    ~Turn() { turns_.end(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };

 private:
  void begin() {
    std::unique_lock lock(mutex_);
    const std::uint64_t own = came_++;
    changed_.wait(lock, [&] { return free_ > 0 && waiting_first_ == 0 && own == next_; });
    ++next_;
    --free_;
    changed_.notify_all();  // there may be more
  }
  void begin_first() {
    std::unique_lock lock(mutex_);
    ++waiting_first_;
    changed_.wait(lock, [&] { return free_ > 0; });
    --waiting_first_;
    --free_;
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ++free_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  int waiting_first_ = 0;
  std::uint64_t came_ = 0, next_ = 0;  // numbers of those that are not first
};

}  // namespace hfta::fusion
