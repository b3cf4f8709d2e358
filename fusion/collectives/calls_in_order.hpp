#pragma once
/// A thread that makes calls one after another, beside who asks for them.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace hfta::fusion {

/// One thread may use it. Its destructor waits for the call under way, and drops those behind it.
class CallsInOrder {
 public:
  CallsInOrder();
  ~CallsInOrder();
  CallsInOrder(const CallsInOrder&) = delete;
  CallsInOrder& operator=(const CallsInOrder&) = delete;

  /// Adds a call, which is made after those added before it.
  void add(std::function<void()> call);
  /// How many calls have been made. Throws what one of them has thrown; those behind it are dropped.
  [[nodiscard]] std::size_t made();
  /// Waits until so many calls have been made. Throws as made().
  void wait_for(std::size_t count);

 private:
  void work();
  void rethrow() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t made_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace hfta::fusion
