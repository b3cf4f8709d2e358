#pragma once
/// Which steps of a chunk are made op by op, and which by a graph.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// The key of a step's graph: everything that may differ between steps and is not in StepParams.
struct StepKey {
  std::vector<at::Tensor> memory;  ///< Memory that the step reads or writes and that is not the chunk's own.
  std::vector<int> part_of;
  std::int64_t samples = 0;

  /// Whether memory lies at the same places in the same shapes.
  [[nodiscard]] bool same_as(const StepKey& other) const;
};

/// Runs steps of one chunk: the first two steps of a key, and each thread's first, op by op, later ones from a graph.
/// Not for two threads at once.
class StepGraphCache {
 public:
  /// `lane`: null where nothing is captured; must outlive it. `why_not`: "" unless graphs can never be made.
  StepGraphCache(StepGraphRecorder* lane, std::string why_not);

  /// Runs `step`: by calling it, or by replaying a graph that was captured from it with the same key. `why_not`: ""
  /// unless no graph may be used this time. A step that cannot be captured is called.
  void run(const StepKey& key, const std::string& why_not, const std::function<void()>& step);

  [[nodiscard]] const StepCounts& counts() const { return counts_; }

 private:
  struct Known {
    StepKey key;
    std::vector<std::thread::id> threads = {};  // that made it: libraries keep what they prepare by thread
    int warm = 0, failed = 0;
    std::uint64_t used = 0;
    std::unique_ptr<StepGraph> graph = nullptr;
  };

  Known& known(const StepKey& key);
  void capture(Known& known, const std::function<void()>& step);
  void run_eagerly(const std::function<void()>& step);

  StepGraphRecorder* lane_;
  std::string why_not_;
  std::vector<Known> known_;
  std::uint64_t clock_ = 0;
  StepCounts counts_;
};

}  // namespace hfta::fusion
