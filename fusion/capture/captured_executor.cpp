#include "fusion/capture/captured_executor.hpp"

namespace hfta::fusion {
namespace {

std::string why_not(const c10::Device& device, const StepGraphBackend* graphs) {
  if (device.is_cpu() && graphs == nullptr) return "a CPU has no graphs of steps";
  return has_step_kernels(device) ? "" : "this build has no kernels for " + device.str();
}

}  // namespace

CapturedExecutor::CapturedExecutor(const ExecutorModel& model, const Lowering& lowering)
    : eager_(model, lowering),
      live_{model.graph,
            eager_.trainer(),
            model.recipe,
            lowering.chunk,
            static_cast<int>(model.graph.hypers.size()),
            model.device,
            model.clips_weights,
            eager_.trainer().why_not_replayed(),
            eager_.shared_runs()} {}

void CapturedExecutor::resize() {
  steps_.clear();  // they refer to the chunks
  eager_.resize();
  for (int k = 0; k < chunks(); ++k) {
    steps_.push_back(std::make_unique<CapturableStep>(live_, eager_.chunk_at(k), eager_.stream(k)));
  }
}

void CapturedExecutor::step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  const PooledStream::Scope turn(eager_.stream(chunk));
  steps_.at(static_cast<std::size_t>(chunk))->run(batch, slots, losses, keep_gradients_);
}

at::Tensor CapturedExecutor::fresh_losses(int chunk) {
  const PooledStream::Scope turn(eager_.stream(chunk));
  return steps_.at(static_cast<std::size_t>(chunk))->fresh_losses();
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

// This kind runs eager's lowerings: the device decides whether steps are captured. So it has no candidates of its own,
// and takes eager's memory; what belongs to the graphs is one batch's values more.
ExecutorKind captured_executor() {
  const ExecutorKind eager = eager_executor();
  ExecutorKind kind = eager;
  kind.name = "captured";
  kind.runs = [](const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs) {
    return eager_executor().runs(lowering, device, graphs) && why_not(device, graphs).empty();
  };
  kind.why_not = [](const WayQuestion& question) {
    const std::string why = why_not(question.device, question.graphs);
    return why.empty() ? why_not_keep(question) : why;
  };
  kind.make = [](const ExecutorModel& model, const Lowering& lowering) -> std::unique_ptr<Executor> {
    return std::make_unique<CapturedExecutor>(model, lowering);
  };
  kind.candidates = [](const WayQuestion&) { return std::vector<Lowering>(); };
  return kind;
}

}  // namespace hfta::fusion
