#include "fusion/collectives/calls_in_order.hpp"

#include <utility>

#include "base/threads.hpp"

namespace hfta::fusion {

CallsInOrder::CallsInOrder() : thread_(start_thread([this] { work(); })) {}

CallsInOrder::~CallsInOrder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CallsInOrder::add(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(call));
  }
  changed_.notify_all();
}

std::size_t CallsInOrder::made() {
  const std::lock_guard lock(mutex_);
  rethrow();
  return made_;
}

void CallsInOrder::wait_for(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return made_ >= count || failure_ != nullptr; });
  rethrow();
}

void CallsInOrder::rethrow() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void CallsInOrder::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || (!waiting_.empty() && failure_ == nullptr); });
    if (ends_) return;
    const std::function<void()> call = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    made_ += failure == nullptr ? 1 : 0;
    changed_.notify_all();
  }
}

}  // namespace hfta::fusion
