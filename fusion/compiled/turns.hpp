#pragma once
/// Who of many threads computes: so many at a time.

#include <condition_variable>
#include <mutex>

namespace hfta::fusion {

class Turns {
 public:
  explicit Turns(int at_a_time) : free_(at_a_time) {}

  /// Whose turn it is, until its end.
  class Turn {
   public:
    /// Waits. `first`: before all those that wait without it.
    Turn(Turns& turns, bool first) : turns_(turns) { turns_.begin(first); }
    ~Turn() { turns_.end(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };

 private:
  void begin(bool first) {
    std::unique_lock lock(mutex_);
    if (first) ++waiting_first_;
    changed_.wait(lock, [&] { return free_ > 0 && (first || waiting_first_ == 0); });
    if (first) --waiting_first_;
    --free_;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  int waiting_first_ = 0;
};

}  // namespace hfta::fusion
