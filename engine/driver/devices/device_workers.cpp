#include "engine/driver/devices/device_workers.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace hfta::engine {
namespace {

DeviceWorkers::Ended timed(std::size_t worker, const std::function<void()>& job, const Clock& clock) {
  DeviceWorkers::Ended ended{worker, 0, nullptr};
  const double start = clock.seconds();
  try {
    job();
  } catch (...) {
    ended.error = std::current_exception();
  }
  ended.seconds = clock.seconds() - start;
  return ended;
}

class OnlyWorker final : public DeviceWorkers {
 public:
  explicit OnlyWorker(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] std::size_t count() const override { return 1; }
  void start(std::size_t /*worker*/, std::function<void()> job) override { job_ = std::move(job); }
  [[nodiscard]] bool busy(std::size_t /*worker*/) const override { return job_ != nullptr; }
  [[nodiscard]] Ended wait() override { return timed(0, std::exchange(job_, nullptr), clock_); }

 private:
  const Clock& clock_;
  std::function<void()> job_;
};

class Threads final : public DeviceWorkers {
 public:
  Threads(std::size_t count, const Clock& clock)
      : clock_(clock),
        jobs_(count),
        busy_(count, false),
        threads_(start_threads(
            static_cast<int>(count), [this](int worker) { loop(static_cast<std::size_t>(worker)); },
            [this] { leave(); })) {}
  ~Threads() override {
    leave();
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  [[nodiscard]] std::size_t count() const override { return jobs_.size(); }

  void start(std::size_t worker, std::function<void()> job) override {
    {
      const std::lock_guard guard(mutex_);
      jobs_.at(worker) = std::move(job);
      busy_.at(worker) = true;
    }
    changed_.notify_all();
  }

  [[nodiscard]] bool busy(std::size_t worker) const override {
    const std::lock_guard guard(mutex_);
    return busy_.at(worker);
  }

  [[nodiscard]] Ended wait() override {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [this] { return !ended_.empty(); });
    Ended first = std::move(ended_.front());
    ended_.pop_front();
    busy_[first.worker] = false;
    return first;
  }

 private:
  void leave() {
    {
      const std::lock_guard guard(mutex_);
      leaving_ = true;
    }
    changed_.notify_all();
  }

  void loop(std::size_t worker) {
    std::unique_lock guard(mutex_);
    for (;;) {
      changed_.wait(guard, [&] { return leaving_ || jobs_[worker]; });
      if (!jobs_[worker]) return;
      const std::function<void()> job = std::exchange(jobs_[worker], nullptr);
      guard.unlock();
      Ended ended = timed(worker, job, clock_);
      guard.lock();
      ended_.push_back(std::move(ended));
      changed_.notify_all();
    }
  }

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> jobs_;
  std::vector<bool> busy_;  // from start() until wait() has returned its end
  std::deque<Ended> ended_;
  bool leaving_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<DeviceWorkers> make_threads(std::size_t count, const Clock& clock) {
  if (count < 2) return std::make_unique<OnlyWorker>(clock);
  return std::make_unique<Threads>(count, clock);
}

}  // namespace hfta::engine
