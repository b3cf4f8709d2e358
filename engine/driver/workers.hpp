#pragma once
/// One thread per device, so that devices train at the same time.

#include <functional>
#include <memory>
#include <vector>

namespace hfta::engine {

/// A fixed set of threads that lives as long as the run: numeric libraries keep a pool of their own per thread that
/// calls them, which a new thread every round would build anew. With one worker no thread is made at all.
class Workers {
 public:
  explicit Workers(std::size_t count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs jobs[i] on worker i (an empty function: nothing) and returns when all have ended. If some throw, the first by
  /// index is thrown on. REQUIRES jobs.size() <= count.
  void run(const std::vector<std::function<void()>>& jobs);

 private:
  struct Worker;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace hfta::engine
