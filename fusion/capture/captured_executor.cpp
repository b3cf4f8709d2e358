#include "fusion/capture/captured_executor.hpp"

namespace hfta::fusion {

CapturedExecutor::CapturedExecutor(const ExecutorModel& model, const Lowering& lowering)
    : eager_(model, lowering), live_{eager_.trainer(),    model.recipe,
                                     lowering.chunk,      static_cast<int>(model.graph.hypers.size()),
                                     model.device,        eager_.trainer().why_not_replayed(),
                                     eager_.shared_runs()} {}

void CapturedExecutor::resize() {
  steps_.clear();  // they refer to the groups
  eager_.resize();
  for (int k = 0; k < groups(); ++k) {
    steps_.push_back(std::make_unique<CapturableStep>(live_, eager_.chunk(k), eager_.stream(k)));
  }
}

void CapturedExecutor::step(int group, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  const PooledStream::Scope turn(eager_.stream(group));
  steps_.at(static_cast<std::size_t>(group))->run(batch, slots, losses, keep_gradients_);
}

at::Tensor CapturedExecutor::fresh_losses(int group) {
  const PooledStream::Scope turn(eager_.stream(group));
  return steps_.at(static_cast<std::size_t>(group))->fresh_losses();
}

StepCounts CapturedExecutor::step_counts() const {
  StepCounts all;
  for (const auto& step : steps_) {
    const StepCounts& counts = step->counts();
    all.captured += counts.captured;
    all.replayed += counts.replayed;
    all.eager += counts.eager;
    if (all.why_eager.empty()) all.why_eager = counts.why_eager;
  }
  return all;
}

ExecutorKind captured_executor() {
  return {"captured",
          [](const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs) {
            return !lowering.compiled && (!device.is_cpu() || graphs != nullptr) && has_step_kernels(device);
          },
          [](const ExecutorModel& model, const Lowering& lowering) -> std::unique_ptr<Executor> {
            return std::make_unique<CapturedExecutor>(model, lowering);
          },
          // Those of eager: whether steps are captured is decided by the device.
          [](const CandidateQuestion&) { return std::vector<Lowering>(); }};
}

}  // namespace hfta::fusion
