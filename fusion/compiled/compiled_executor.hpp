#pragma once
/// Slots run one by one, each by kernels that were compiled for the whole graph, on a CPU. Threads, or teams of
/// threads, run a slot each; where fewer slots than these are left, more threads share the work of one. Each works in
/// one arena.

#include <memory>
#include <vector>

#include "fusion/compiled/compiled.hpp"
#include "fusion/compiled/stage_link.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/execution/kind.hpp"
#include "fusion/execution/thread_pool.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion {

/// See Executor. A steady step allocates nothing.
class CompiledExecutor final : public Executor {
 public:
  /// Throws Error{kConfig} naming an op that cannot be compiled. REQUIRES a CPU, and Lowering::chunk of 1.
  CompiledExecutor(const ExecutorModel& model, const Lowering& lowering);

  void resize() override;
  [[nodiscard]] int chunks() const override { return static_cast<int>(gradients_.size()); }
  /// Runs Lowering::workers chunks at a time, each by Lowering::threads_per_worker threads. The rest, if there
  /// are at most half as many, are run by teams that share all threads, to the same bits. In a stage of a pipeline all
  /// chunks are under way, as most of them wait for other stages; as many as there are threads compute at a time.
  void for_each(std::span<const int> chunks, const std::function<void(int)>& work) override;
  void step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) override;
  [[nodiscard]] at::Tensor fresh_losses(int chunk) override;
  [[nodiscard]] std::vector<at::Tensor> predict(int chunk, const Samples& samples,
                                                std::span<const SlotRun> slots) override;
  void keep_gradients(bool keep) override { keep_gradients_ = keep; }
  [[nodiscard]] Gradients gradients(int chunk) const override { return gradients_.at(static_cast<std::size_t>(chunk)); }
  /// Bytes of the workspaces of the threads and teams that are at work.
  [[nodiscard]] std::int64_t workspace_bytes() const override;

 private:
  [[nodiscard]] int threads_at_work() const;
  void form_teams(int count);
  void run_in_teams(std::span<const int> chunks, const std::function<void(int)>& work);
  [[nodiscard]] CompiledSlot slot_of(int chunk, const SlotRun& slot) const;

  ExecutorModel model_;
  int workers_, threads_per_worker_;
  mutable CompiledModel compiled_;  // it locks
  std::unique_ptr<ThreadPool> threads_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<Team*> team_of_;        // by chunk; null where a thread works alone
  std::vector<Gradients> gradients_;  // by chunk, where they are kept
  bool keep_gradients_ = false;
};

/// Runs lowerings of the executor "compiled", on a CPU.
[[nodiscard]] ExecutorKind compiled_executor();

}  // namespace hfta::fusion
