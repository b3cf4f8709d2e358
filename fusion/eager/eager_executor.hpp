#pragma once
/// Slots run op by op through LibTorch: one by one, or c at once by batching rules.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "fusion/eager/chunk.hpp"
#include "fusion/eager/program.hpp"
#include "fusion/eager/stream_pool.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/execution/kind.hpp"
#include "fusion/execution/thread_pool.hpp"

namespace hfta::fusion {

/// See Executor. fusion/capture builds on it.
class EagerExecutor final : public Executor {
 public:
  /// Throws Error{kConfig} naming an op that cannot be run so.
  EagerExecutor(const ExecutorModel& model, const Lowering& lowering);

  void resize() override;
  [[nodiscard]] int chunks() const override { return static_cast<int>(chunks_.size()); }
  void for_each(std::span<const int> chunks, const std::function<void(int)>& work) override;
  void step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) override;
  [[nodiscard]] at::Tensor fresh_losses(int chunk) override;
  [[nodiscard]] std::vector<at::Tensor> predict(int chunk, const Samples& samples,
                                                std::span<const SlotRun> slots) override;
  [[nodiscard]] bool shares_layers() const override { return trainer_.shares_layers(); }
  void prepare(Samples& samples, SampleUse use) override;
  [[nodiscard]] std::int64_t shared_runs() const override { return shared_runs_; }
  void keep_gradients(bool keep) override { keep_gradients_ = keep; }
  [[nodiscard]] Gradients gradients(int chunk) const override;
  /// Choices for chunks; none where a slot runs by itself, as LibTorch runs it.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> choices() const override {
    if (slots_ == 1) return {};
    return trainer_.choices();
  }

  [[nodiscard]] const Program& trainer() const { return trainer_; }
  [[nodiscard]] Chunk& chunk_at(int chunk) { return chunks_.at(static_cast<std::size_t>(chunk)); }
  [[nodiscard]] const PooledStream& stream(int chunk) const { return streams_->of_chunk(chunk); }
  /// Counts runs of Program::share for training.
  [[nodiscard]] std::atomic<std::int64_t>& shared_runs() { return shared_runs_; }

 private:
  [[nodiscard]] int wide() const { return slots_ == 1 ? 0 : slots_; }
  void run_ops(int chunk, const std::function<void()>& work) const;
  void run_step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses);
  [[nodiscard]] std::shared_ptr<const ValueEnv> share(const Samples& samples, bool training);
  [[nodiscard]] std::vector<at::Tensor> run(int chunk, const Program& program, std::span<const ValueEnv* const> shared,
                                            std::span<const SlotRun> slots);
  [[nodiscard]] std::vector<at::Tensor> forward(int chunk, const Batch& batch, std::span<const SlotRun> slots);

  ExecutorModel model_;
  int slots_;  // c
  int workers_, threads_per_worker_;
  Program trainer_, evaluator_;
  std::vector<Chunk> chunks_;
  std::optional<StreamPool> streams_;
  std::unique_ptr<ThreadPool> threads_;
  bool keep_gradients_ = false;
  std::atomic<std::int64_t> shared_runs_ = 0;
};

/// Runs lowerings of the executor "eager", on every device.
[[nodiscard]] ExecutorKind eager_executor();

}  // namespace hfta::fusion
