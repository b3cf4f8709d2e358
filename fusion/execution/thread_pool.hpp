#pragma once
/// Threads that run an array's chunks.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hfta::fusion {

/// `count` threads, each with its own `threads_inside` for the insides of ops. They live as long as the pool, because
/// OpenMP keeps a team per calling thread.
class ThreadPool {
 public:
  /// Throws Error{kDevice} where a thread cannot be started.
  ThreadPool(int count, int threads_inside);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Runs task(0) .. task(n-1), each on some worker; returns when all are done. Rethrows the exception of the lowest
  /// failing index; the others run to their end.
  void run(int n, const std::function<void(int)>& task);
  /// Runs the task on one worker, whose ops may use the threads of all.
  void run_alone(const std::function<void()>& task);

 private:
  void serve(int threads_inside);
  void stop();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)>* task_ = nullptr;
  int next_ = 0, count_ = 0, unfinished_ = 0;
  int failed_index_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
  int threads_inside_;
  std::vector<std::thread> threads_;
};

}  // namespace hfta::fusion
