#include "fusion/compiled/compiled_executor.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <utility>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "fusion/compiled/compilation.hpp"

namespace hfta::fusion {
namespace {

constexpr const char* kName = "compiled";

// Memory that each lowering needs, in their order. Gradients of the slots at work lie in the arenas of their threads.
// What LibTorch keeps for ops that it runs does not lie there: it is bounded by the values of these ops.
std::vector<WayMemory> memory(const WayQuestion& question, std::span<const Lowering> lowerings) {
  const std::vector<std::string> by_torch = compilation_of(question.graph, question.recipe).by_torch;
  const std::int64_t beside = (bytes_of_values(question, by_torch) + question.stages - 1) / question.stages;
  std::map<int, std::vector<int>> recompute;  // by number of threads in all teams, which have scratch memory
  for (const Lowering& one : lowerings) recompute[one.workers * one.threads_per_worker].push_back(one.recompute);
  std::map<std::pair<int, int>, std::int64_t> bytes;
  for (const auto& [threads, all] : recompute) {
    const std::vector<std::int64_t> arenas = arena_bytes(question, threads, all);
    for (std::size_t i = 0; i < all.size(); ++i) bytes[{threads, all[i]}] = arenas[i];
  }
  std::vector<WayMemory> found;
  for (const Lowering& one : lowerings) {
    found.push_back({0, bytes.at({one.workers * one.threads_per_worker, one.recompute}) + beside});
  }
  return found;
}

// A note that says how much is compressed.
std::string note_of_compression(const Compilation& found) {
  if (found.encoded == 0) return "no value can lie encoded: values are kept, or computed again";
  return fmt::format("{} of a batch's values, {}, lie encoded between forward and backward", found.encoded,
                     bytes_text(found.encoded_bytes));
}

// Values of Lowering::recompute, each of which needs clearly less memory than those before it.
std::vector<int> worthwhile_recomputing(const WayQuestion& question) {
  constexpr double kClearly = 0.97;
  static constexpr std::array kTried = {0, 1, 2, 3, 4, 6, 8};
  const std::vector<std::int64_t> arenas = arena_bytes(question, question.threads, kTried);
  std::vector<int> all;
  std::int64_t least = arenas.front();
  for (std::size_t i = 1; i < kTried.size(); ++i) {
    if (static_cast<double>(arenas[i]) >= kClearly * static_cast<double>(least)) continue;
    all.push_back(kTried[i]);
    least = arenas[i];
  }
  return all;
}

// First come threads by themselves, which train the most slots at a time; then ever fewer and larger teams, which need
// fewer arenas. All train the same bits, on any number of threads.
std::vector<Lowering> on_threads(const Lowering& lowering, int threads) {
  std::vector<Lowering> all;
  for (int workers = threads; workers >= 1; workers /= 2) {
    Lowering split = lowering;
    split.workers = workers;
    split.threads_per_worker = threads / workers;
    all.push_back(std::move(split));
  }
  return all;
}

// Candidates that recompute ever more. If there are more threads than slots, they form teams.
std::vector<Lowering> candidates(const WayQuestion& question) {
  std::vector<int> recompute = {0};
  if (question.policy == MemoryPolicy::kAuto || question.policy == MemoryPolicy::kRecompute) {
    const std::vector<int> worthwhile = worthwhile_recomputing(question);
    if (question.policy == MemoryPolicy::kRecompute && !worthwhile.empty()) recompute.clear();
    recompute.insert(recompute.end(), worthwhile.begin(), worthwhile.end());
  }
  std::vector<Lowering> all;
  for (const int level : recompute) {
    Lowering lowering;
    lowering.executor = kName;
    lowering.recompute = level;
    std::vector<Lowering> splits = on_threads(lowering, std::max(1, question.threads));
    if (question.stages > 1) splits.resize(1);  // threads take turns, so that teams do not matter
    for (Lowering& split : splits) all.push_back(std::move(split));
  }
  return all;
}

}  // namespace

CompiledExecutor::CompiledExecutor(const ExecutorModel& model, const Lowering& lowering)
    : model_(model),
      workers_(std::max(1, lowering.workers)),
      threads_per_worker_(std::max(1, lowering.threads_per_worker)),
      compiled_(model, workers_ * threads_per_worker_, lowering.recompute) {}

// In a stage of a pipeline most slots wait for other stages.
int CompiledExecutor::threads_at_work() const {
  return std::max(1, model_.pipeline != nullptr ? chunks() : std::min(workers_, chunks()));
}

void CompiledExecutor::resize() {
  gradients_.assign(static_cast<std::size_t>(model_.store.slots()), {});
  team_of_.assign(gradients_.size(), nullptr);
  // Ops of LibTorch run on one thread whatever the team, as their sums may depend on how many there are.
  threads_ = std::make_unique<ThreadPool>(threads_at_work(), 1);
}

// Teams are kept until another number is wanted: an array is narrowed between epochs, not within.
void CompiledExecutor::form_teams(int count) {
  if (static_cast<int>(teams_.size()) == count) return;
  teams_.clear();
  for (int t = 0; t < count; ++t) teams_.push_back(std::make_unique<Team>(workers_ * threads_per_worker_ / count));
}

// Runs at most as many chunks as workers, each by a team of its own; all threads are shared out.
void CompiledExecutor::run_in_teams(std::span<const int> chunks, const std::function<void(int)>& work) {
  form_teams(static_cast<int>(chunks.size()));
  for (std::size_t t = 0; t < chunks.size(); ++t) team_of_[static_cast<std::size_t>(chunks[t])] = teams_[t].get();
  std::exception_ptr failure;
  try {
    threads_->run(static_cast<int>(chunks.size()), [&](int t) { work(chunks[static_cast<std::size_t>(t)]); });
  } catch (...) {
    failure = std::current_exception();
  }
  std::fill(team_of_.begin(), team_of_.end(), nullptr);
  if (failure) std::rethrow_exception(failure);
}

void CompiledExecutor::for_each(std::span<const int> chunks, const std::function<void(int)>& work) {
  const auto run = [&](std::span<const int> some) {
    threads_->run(static_cast<int>(some.size()), [&](int i) { work(some[static_cast<std::size_t>(i)]); });
  };
  if (model_.pipeline != nullptr) return run(chunks);
  const std::size_t count = chunks.size(), workers = static_cast<std::size_t>(workers_), rest = count % workers;
  const bool in_teams = threads_per_worker_ > 1, rest_in_teams = rest > 0 && (in_teams || workers / rest > 1);
  const std::size_t alone = in_teams ? 0 : rest_in_teams ? count - rest : count;
  std::exception_ptr failure;  // the others run to their end
  const auto attempt = [&](const auto& part) {
    try {
      part();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  attempt([&] { run(chunks.first(alone)); });
  for (std::size_t first = alone; first < count; first += workers) {
    attempt([&] { run_in_teams(chunks.subspan(first, std::min(workers, count - first)), work); });
  }
  if (failure) std::rethrow_exception(failure);
}

CompiledSlot CompiledExecutor::slot_of(int chunk, const SlotRun& slot) const {
  return {chunk, slot.random, slot.hypers, team_of_[static_cast<std::size_t>(chunk)]};
}

void CompiledExecutor::step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) {
  const SlotRun& slot = slots.front();
  if (!slot.occupied) return;
  const Samples& samples = batch.parts[batch.part_of_slot(0)];
  CompiledSlot own = slot_of(chunk, slot);
  own.counts = batch.counts;
  const BatchLoss loss = compiled_.step(own, samples, slot.steps,
                                        keep_gradients_ ? &gradients_[static_cast<std::size_t>(chunk)] : nullptr);
  auto* const sums = losses.data_ptr<double>();
  if (loss.weight != 0) sums[0] += loss.mean * loss.weight;  // a batch whose labels are all ignored has no mean
  sums[1] += loss.weight;
}

at::Tensor CompiledExecutor::fresh_losses(int /*chunk*/) { return at::zeros({2, 1}, at::kDouble); }

std::vector<at::Tensor> CompiledExecutor::predict(int chunk, const Samples& samples, std::span<const SlotRun> slots) {
  return compiled_.predict(slot_of(chunk, slots.front()), samples);
}

std::int64_t CompiledExecutor::workspace_bytes() const {
  const Pipeline* const pipeline = model_.pipeline;
  const int threads = workers_ * threads_per_worker_;
  const int most = pipeline == nullptr ? workers_ : slots_of_stage(threads, pipeline->cut.stages);
  return std::min(most, chunks()) * compiled_.workspace_bytes();
}

ExecutorKind compiled_executor() {
  return {.name = kName,
          .runs =
              [](const Lowering& lowering, const c10::Device& device, const StepGraphBackend*) {
                return lowering.executor == kName && lowering.chunk == 1 && device.is_cpu() && lowering.recompute >= 0;
              },
          .why_not = [](const WayQuestion& question) -> std::string {
            if (!question.device.is_cpu()) return "kernels are compiled for a CPU";
            if (question.recipe.compression) {
              if (question.recipe.dtype != DType::kFloat32) return "values are compressed in float32 alone";
              if (!question.recipe.phases.empty()) return "values are not compressed where steps have phases";
            }
            return compilation_of(question.graph, question.recipe).why_not;
          },
          .make = [](const ExecutorModel& model, const Lowering& lowering) -> std::unique_ptr<Executor> {
            return std::make_unique<CompiledExecutor>(model, lowering);
          },
          .candidates = candidates,
          .memory = memory,
          .on_threads = on_threads,
          .why_not_staged = why_not_in_stages,
          .note = [](const WayQuestion& question) -> std::string {
            const Compilation found = compilation_of(question.graph, question.recipe);
            std::vector<std::string> notes;
            if (!found.by_torch.empty()) {
              notes.push_back(fmt::format("LibTorch runs {}, for want of a compiler", join(found.by_torch)));
            }
            if (question.recipe.compression) notes.push_back(note_of_compression(found));
            return join(notes, "; ");
          }};
}

}  // namespace hfta::fusion
