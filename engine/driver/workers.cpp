#include "engine/driver/workers.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace hfta::engine {

struct Workers::Worker {
  Worker() : thread([this] { loop(); }) {}

  ~Worker() {
    {
      const std::lock_guard guard(mutex);
      leaving = true;
    }
    changed.notify_all();
    thread.join();
  }

  void start(const std::function<void()>& next) {
    {
      const std::lock_guard guard(mutex);
      job = &next;
      error = nullptr;
    }
    changed.notify_all();
  }

  std::exception_ptr wait() {
    std::unique_lock guard(mutex);
    changed.wait(guard, [this] { return job == nullptr; });
    return error;
  }

  void loop() {
    std::unique_lock guard(mutex);
    for (;;) {
      changed.wait(guard, [this] { return leaving || job != nullptr; });
      if (job == nullptr) return;
      guard.unlock();
      std::exception_ptr thrown;
      try {
        (*job)();
      } catch (...) {
        thrown = std::current_exception();
      }
      guard.lock();
      error = thrown;
      job = nullptr;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void()>* job = nullptr;
  std::exception_ptr error;
  bool leaving = false;
  std::thread thread;  // last: it starts when everything above is there
};

Workers::Workers(std::size_t count) {
  if (count < 2) return;
  for (std::size_t i = 0; i < count; ++i) workers_.push_back(std::make_unique<Worker>());
}

Workers::~Workers() = default;

void Workers::run(const std::vector<std::function<void()>>& jobs) {
  if (workers_.empty()) {
    for (const auto& job : jobs) {
      if (job) job();
    }
    return;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i]) workers_[i]->start(jobs[i]);
  }
  std::exception_ptr first;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i]) continue;
    const std::exception_ptr error = workers_[i]->wait();
    if (error && !first) first = error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace hfta::engine
