#include "fusion/execution/thread_pool.hpp"

#include <ATen/Parallel.h>

#include "base/error.hpp"
#include "base/threads.hpp"

namespace hfta::fusion {

ThreadPool::ThreadPool(int count, int threads_inside)
    : threads_inside_(threads_inside),
      threads_(start_threads(
          count, [this](int) { serve(threads_inside_); }, [this] { stop(); })) {}

ThreadPool::~ThreadPool() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void ThreadPool::run(int n, const std::function<void(int)>& task) {
  if (n == 0) return;
  std::unique_lock lock(mutex_);
  if (task_ != nullptr) throw Error(ErrorKind::kInternal, "thread pool: asked to run tasks while it runs others");
  task_ = &task;
  next_ = 0;
  count_ = unfinished_ = n;
  failure_ = nullptr;
  wake_.notify_all();
  done_.wait(lock, [this] { return unfinished_ == 0; });
  task_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::run_alone(const std::function<void()>& task) {
  run(1, [&](int) {
    at::set_num_threads(threads_inside_ * static_cast<int>(threads_.size()));
    try {
      task();
    } catch (...) {
      at::set_num_threads(threads_inside_);
      throw;
    }
    at::set_num_threads(threads_inside_);
  });
}

void ThreadPool::serve(int threads_inside) {
  // A thread's first op would otherwise take over whatever number any thread set last, so that is made to happen now.
  static_cast<void>(at::get_num_threads());
  at::set_num_threads(threads_inside);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || (task_ != nullptr && next_ < count_); });
    if (stopping_) return;
    const int index = next_++;
    const std::function<void(int)>& task = *task_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task(index);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && (!failure_ || index < failed_index_)) {
      failure_ = failure;
      failed_index_ = index;
    }
    if (--unfinished_ == 0) done_.notify_all();
  }
}

}  // namespace hfta::fusion
