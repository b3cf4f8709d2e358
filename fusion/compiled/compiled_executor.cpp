#include "fusion/compiled/compiled_executor.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

namespace hfta::fusion {
namespace {

constexpr const char* kName = "compiled";

}  // namespace

CompiledExecutor::CompiledExecutor(const ExecutorModel& model, const Lowering& lowering)
    : model_(model),
      workers_(std::max(1, lowering.workers)),
      threads_per_worker_(lowering.threads_per_worker),
      compiled_(model, workers_) {}

void CompiledExecutor::resize() {
  gradients_.assign(static_cast<std::size_t>(model_.store.slots()), {});
  team_of_.assign(gradients_.size(), nullptr);
  threads_ = std::make_unique<ThreadPool>(std::max(1, std::min(workers_, groups())), threads_per_worker_);
}

// They are kept until another number is wanted: an array is narrowed between epochs, not within.
void CompiledExecutor::form_teams(int count) {
  if (static_cast<int>(teams_.size()) == count) return;
  teams_.clear();
  for (int t = 0; t < count; ++t) teams_.push_back(std::make_unique<Team>(workers_ / count));
}

void CompiledExecutor::for_each(std::span<const int> groups, const std::function<void(int)>& work) {
  const int count = static_cast<int>(groups.size()), rest = count % workers_;
  const bool teams = rest > 0 && workers_ / rest > 1;
  const int alone = teams ? count - rest : count;
  std::exception_ptr failure;  // the others run to their end
  try {
    threads_->run(alone, [&](int i) { work(groups[static_cast<std::size_t>(i)]); });
  } catch (...) {
    failure = std::current_exception();
  }
  if (teams) {
    form_teams(rest);
    for (int t = 0; t < rest; ++t) {
      team_of_[static_cast<std::size_t>(groups[static_cast<std::size_t>(alone + t)])] =
          teams_[static_cast<std::size_t>(t)].get();
    }
    try {
      threads_->run(rest, [&](int t) { work(groups[static_cast<std::size_t>(alone + t)]); });
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
    std::fill(team_of_.begin(), team_of_.end(), nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

CompiledSlot CompiledExecutor::slot_of(int group, const SlotRun& slot) const {
  return {group, slot.random, slot.hypers, team_of_[static_cast<std::size_t>(group)]};
}

void CompiledExecutor::step(int group, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  const SlotRun& slot = slots.front();
  if (!slot.occupied) return;
  const Samples& samples = batch.parts[batch.part_of_slot(0)];
  CompiledSlot own = slot_of(group, slot);
  own.counts = batch.counts;
  const BatchLoss loss = compiled_.step(own, samples, slot.steps,
                                        keep_gradients_ ? &gradients_[static_cast<std::size_t>(group)] : nullptr);
  auto* const sums = losses.data_ptr<double>();
  if (loss.weight != 0) sums[0] += loss.mean * loss.weight;  // a batch whose labels are all ignored has no mean
  sums[1] += loss.weight;
}

at::Tensor CompiledExecutor::fresh_losses(int /*group*/) { return at::zeros({2, 1}, at::kDouble); }

std::vector<at::Tensor> CompiledExecutor::predict(int group, const Samples& samples, std::span<const SlotRun> slots) {
  return compiled_.predict(slot_of(group, slots.front()), samples);
}

std::int64_t CompiledExecutor::workspace_bytes() const {
  return std::min(workers_, groups()) * compiled_.workspace_bytes();
}

ExecutorKind compiled_executor() {
  return {.name = kName,
          .runs =
              [](const Lowering& lowering, const c10::Device& device, const StepGraphBackend*) {
                return lowering.executor == kName && lowering.chunk == 1 && device.is_cpu();
              },
          .why_not = [](const WayQuestion& question) -> std::string {
            if (!question.device.is_cpu()) return "kernels are compiled for a CPU";
            return compilation_of(question.graph, question.recipe).why_not;
          },
          .make = [](const ExecutorModel& model, const Lowering& lowering) -> std::unique_ptr<Executor> {
            return std::make_unique<CompiledExecutor>(model, lowering);
          },
          .candidates = [](const WayQuestion& question) -> std::vector<Lowering> {
            Lowering lowering = in_groups_of(1, question);
            lowering.executor = kName;
            lowering.workers = std::max(1, question.threads);  // be they more than slots: they form teams
            lowering.threads_per_worker = 1;
            return {lowering};
          },
          // Gradients are those of the slots at work: they lie in the arena of their thread.
          .memory = [](const WayQuestion& question) -> WayMemory {
            return {0, bytes_of_gradients(question.graph) + bytes_of_values(question)};
          },
          .note = [](const WayQuestion& question) -> std::string {
            const std::vector<std::string> ops = compilation_of(question.graph, question.recipe).by_torch;
            return ops.empty() ? "" : fmt::format("LibTorch runs {}, for want of a compiler", fmt::join(ops, ", "));
          }};
}

}  // namespace hfta::fusion
