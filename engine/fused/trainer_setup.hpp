#pragma once
/// The setup of a fused trainer: its options, and what follows from them and from the machine alone.

#include <c10/core/Device.h>

#include <memory>

#include "engine/module.hpp"
#include "fusion/gpu.hpp"

namespace hfta::engine {

/// Never changes once it is made. Owns the trainer's options.
class TrainerSetup {
 public:
  /// Reads the number of cores, and loads the backend of CUDA graphs for a GPU.
  explicit TrainerSetup(const TrainerOptions& options);

  [[nodiscard]] const TrainerOptions& options() const { return options_; }
  [[nodiscard]] const StudyConfig& config() const { return options_.config; }
  [[nodiscard]] c10::Device device() const { return c10::Device(options_.device); }
  /// Number of cores of this machine that the process may use.
  [[nodiscard]] int cores() const { return cores_; }
  /// Number of CPU threads that train an array.
  [[nodiscard]] int threads() const;
  /// Ranks of which it is one; 1: it trains alone.
  [[nodiscard]] int ranks() const;
  /// Number of stages of the pipeline that these ranks form; 1: they form none.
  [[nodiscard]] int stages() const;
  /// Captures steps of arrays on device(); null where steps are not captured.
  [[nodiscard]] const std::shared_ptr<fusion::StepGraphBackend>& graphs() const { return cuda_graphs_.backend; }

 private:
  TrainerOptions options_;
  int cores_;  ///< usable_cores(), which reads files.
  fusion::CudaGraphs cuda_graphs_;
};

}  // namespace hfta::engine
