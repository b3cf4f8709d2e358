#include "fusion/eager/eager_executor.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "fusion/eager/accumulation.hpp"
#include "fusion/eager/loss.hpp"
#include "fusion/eager/optimizer.hpp"
#include "fusion/eager/ranks.hpp"
#include "fusion/eager/run_numbers.hpp"

namespace hfta::fusion {
namespace {

// [c] bool: which slots take a step.
at::Tensor updating(std::span<const SlotRun> slots) {
  at::Tensor mask = at::empty({static_cast<std::int64_t>(slots.size())}, at::kBool);
  for (std::size_t b = 0; b < slots.size(); ++b) mask.data_ptr<bool>()[b] = slots[b].steps.front().updates;
  return mask;
}

}  // namespace

EagerExecutor::EagerExecutor(const ExecutorModel& model, const Lowering& lowering)
    : model_(model),
      slots_(lowering.chunk),
      workers_(lowering.workers),
      threads_per_worker_(lowering.threads_per_worker),
      trainer_(model.training, model.owned, lowering, model.device, model.recipe.precision),
      evaluator_(model.evaluation, model.owned, lowering, model.device, model.recipe.precision) {
  if (!model.recipe.compression) return;
  throw Error(ErrorKind::kConfig, "lowering: found eager with compressed values, wanted compiled");
}

void EagerExecutor::resize() {
  chunks_.clear();
  for (int first = 0; first < model_.store.slots(); first += slots_) {
    chunks_.emplace_back(model_, first, slots_);
  }
  streams_.emplace(model_.device, chunks(), model_.graphs.get());
  threads_ = std::make_unique<ThreadPool>(std::max(1, std::min(workers_, chunks())), threads_per_worker_);
}

void EagerExecutor::for_each(std::span<const int> chunks, const std::function<void(int)>& work) {
  streams_->fork();
  try {
    threads_->run(static_cast<int>(chunks.size()), [&](int i) {
      const int chunk = chunks[static_cast<std::size_t>(i)];
      const std::lock_guard in_turn(stream(chunk).in_use());
      const auto on_stream = StreamPool::on(stream(chunk));
      work(chunk);
    });
  } catch (...) {
    streams_->join();
    throw;
  }
  streams_->join();
}

// Values that slots compute alike of some samples.
std::shared_ptr<const ValueEnv> EagerExecutor::share(const Samples& samples, bool training) {
  if (samples.shared != nullptr) return samples.shared;
  if (training) ++shared_runs_;
  const Program& program = training ? trainer_ : evaluator_;
  const std::vector<at::Tensor> inputs =
      inputs_of(samples, model_.graph, [&](const SampleArray& all) { return samples.of(all); });
  return std::make_shared<const ValueEnv>(program.share(inputs, chunks_.front().leaves));
}

// Runs `work` while no graph is captured on the device.
void EagerExecutor::run_ops(int chunk, const std::function<void()>& work) const {
  StepGraphRecorder* const graphs = stream(chunk).graphs();
  if (graphs == nullptr) return work();
  graphs->run(work);
}

void EagerExecutor::prepare(Samples& samples, SampleUse use) {
  if (samples.shared != nullptr) return;
  threads_->run_alone([&] { run_ops(0, [&] { samples.shared = share(samples, use == SampleUse::kTraining); }); });
}

std::vector<at::Tensor> EagerExecutor::run(int chunk, const Program& program, std::span<const ValueEnv* const> shared,
                                           std::span<const SlotRun> slots) {
  std::vector<SlotRandom> random;
  std::vector<std::vector<double>> hypers;
  for (const SlotRun& slot : slots) {
    random.push_back(slot.random);
    hypers.emplace_back(slot.hypers.begin(), slot.hypers.end());
  }
  const HostNumbers numbers(random, hypers);
  return program.run(shared, chunk_at(chunk).leaves, RunContext{wide(), numbers, model_.device});
}

std::vector<at::Tensor> EagerExecutor::forward(int chunk, const Batch& batch, std::span<const SlotRun> slots) {
  std::vector<std::shared_ptr<const ValueEnv>> parts(batch.parts.size());
  std::vector<const ValueEnv*> of_slot;
  for (int i = 0; i < slots_; ++i) {
    const std::size_t part = batch.part_of_slot(i);
    if (parts[part] == nullptr) parts[part] = share(batch.parts[part], true);
    of_slot.push_back(parts[part].get());
  }
  return run(chunk, trainer_, of_slot, slots);
}

void EagerExecutor::step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  run_ops(chunk, [&] { run_step(chunk, batch, slots, losses); });
}

void EagerExecutor::run_step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  const at::AutoGradMode record(true);
  std::vector<SlotStep> steps;
  for (const SlotRun& slot : slots) steps.insert(steps.end(), slot.steps.begin(), slot.steps.end());
  std::vector<at::Tensor> objective = forward(chunk, batch, slots);
  backward(objective.front());
  std::vector<ParameterSlots> reached = chunk_at(chunk).take_gradients(keep_gradients_);
  const std::int64_t samples = batch.parts.front().size();
  if (model_.group != nullptr) objective = mean_over_ranks(*model_.group, batch, slots, objective, reached);
  add_loss(losses, objective, samples);
  if (!model_.recipe.accumulates) return fusion::step(model_.recipe.optimizer, reached, steps);
  const at::Tensor& total = chunk_at(chunk).gradient_weight;
  accumulate(reached, total, objective, samples);
  const at::Tensor updated = updating(slots);
  if (!updated.any().item<bool>()) return;
  take_means(reached, total);
  fusion::step(model_.recipe.optimizer, reached, steps);
  begin_anew(reached, total, updated.to(model_.device));
}

at::Tensor EagerExecutor::fresh_losses(int /*chunk*/) {
  return at::zeros({2, slots_}, at::TensorOptions().dtype(at::kDouble).device(model_.device));
}

std::vector<at::Tensor> EagerExecutor::predict(int chunk, const Samples& samples, std::span<const SlotRun> slots) {
  const at::NoGradGuard no_gradients;
  const PooledStream::Scope turn(stream(chunk));
  std::vector<at::Tensor> outputs;
  run_ops(chunk, [&] {
    const std::shared_ptr<const ValueEnv> shared = share(samples, false);
    const std::vector<const ValueEnv*> of_slot(static_cast<std::size_t>(slots_), shared.get());
    outputs = run(chunk, evaluator_, of_slot, slots);
  });
  return outputs;
}

Gradients EagerExecutor::gradients(int chunk) const {
  const Chunk& own = chunks_.at(static_cast<std::size_t>(chunk));
  Gradients out;
  for (std::size_t k = 0; k < own.kept_gradients.size(); ++k) out.emplace_back(own.trained[k], own.kept_gradients[k]);
  return out;
}

}  // namespace hfta::fusion
