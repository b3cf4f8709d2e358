#pragma once
/// Eager steps on the device's own numbers, captured once and replayed where they can be.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/capture/capturable_step.hpp"
#include "fusion/eager/eager_executor.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/execution/kind.hpp"

namespace hfta::fusion {

/// See Executor. Predictions are made op by op.
class CapturedExecutor final : public Executor {
 public:
  /// Throws Error{kConfig} naming an op that cannot be run so.
  CapturedExecutor(const ExecutorModel& model, const Lowering& lowering);

  void resize() override;
  [[nodiscard]] int chunks() const override { return eager_.chunks(); }
  void for_each(std::span<const int> chunks, const std::function<void(int)>& work) override {
    eager_.for_each(chunks, work);
  }
  void step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) override;
  [[nodiscard]] at::Tensor fresh_losses(int chunk) override;
  [[nodiscard]] std::vector<at::Tensor> predict(int chunk, const Samples& samples,
                                                std::span<const SlotRun> slots) override {
    return eager_.predict(chunk, samples, slots);
  }
  /// One chunk by itself had better compute what its slots share within the captured step.
  [[nodiscard]] bool shares_layers() const override { return chunks() > 1 && eager_.shares_layers(); }
  void prepare(Samples& samples, SampleUse use) override { eager_.prepare(samples, use); }
  [[nodiscard]] std::int64_t shared_runs() const override { return std::as_const(eager_).shared_runs(); }
  void keep_gradients(bool keep) override { keep_gradients_ = keep; }
  [[nodiscard]] Gradients gradients(int chunk) const override { return eager_.gradients(chunk); }
  [[nodiscard]] StepCounts step_counts() const override;
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> choices() const override { return eager_.choices(); }

 private:
  EagerExecutor eager_;
  CapturableModel live_;
  std::vector<std::unique_ptr<CapturableStep>> steps_;  // by chunk
  bool keep_gradients_ = false;
};

/// Runs what is not compiled on a GPU with kernels of ours, or where graphs are to be made.
[[nodiscard]] ExecutorKind captured_executor();

}  // namespace hfta::fusion
