#include "fusion/array.hpp"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "fusion/array/progress.hpp"
#include "fusion/executors/executors.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/sharing.hpp"
#include "fusion/random/draws.hpp"
#include "fusion/slots/slot_store.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {
namespace {

struct Slot {
  bool occupied = false;
  SlotInit init;
  SlotProgress progress;
  std::vector<double> hypers = {};  // Graph::hypers'
};

int padded(int width, int chunk) { return (width + chunk - 1) / chunk * chunk; }

}  // namespace

struct Array::Impl {
  Recipe recipe;
  std::size_t model_hypers;  // of graph.hypers, those before the loss's
  Graph graph;
  Lowering lowering;
  int width;
  std::uint64_t study_seed;
  SpecializedGraph alone, training, evaluation;
  std::vector<bool> owned;
  std::vector<int> group_of;  // by weight
  SlotStore store;
  ExecutorModel model;  // all of the above
  std::unique_ptr<Executor> executor;
  std::vector<Slot> slots;
  std::vector<SlotRun> runs;    // by slot: memory for runs_of
  std::vector<SlotStep> steps;  // [slots, groups]: the same
  std::vector<double> default_hypers;
  std::int64_t earlier_shared_runs = 0;  // of executors before this one
  bool keep_gradients = false;

  Impl(Graph g, Recipe r, Lowering l, int w, std::uint64_t seed, const at::Device& device,
       std::shared_ptr<StepGraphBackend> graphs)
      : recipe(std::move(r)),
        model_hypers(g.hypers.size()),
        graph(with_complete_arguments(with_loss(std::move(g), recipe))),
        lowering(std::move(l)),
        width(w),
        study_seed(seed),
        alone(specialized(graph, Purpose::kTraining)),
        training(specialized(graph, Purpose::kTrainingTogether)),
        evaluation(specialized(graph, Purpose::kEvaluation)),
        owned(owned_weights(alone)),
        group_of(groups_of_weights(recipe.groups, graph)),
        store(graph, owned, recipe, padded(w, lowering.chunk), device),
        model{graph, recipe, alone, training, evaluation, owned, group_of, store, device, std::move(graphs)} {
    for (const Hyper& hyper : graph.hypers) default_hypers.push_back(hyper.value);
    if (recipe.dtype == DType::kFloat64 && recipe.precision != Precision::kFloat32) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("precision: found {} with dtype float64, wanted float32", name_of(recipe.precision)));
    }
    if (!device.is_cpu()) {  // LibTorch keeps this for the whole process
      at::globalContext().setDeterministicCuDNN(true);
      at::globalContext().setBenchmarkCuDNN(false);
      at::globalContext().setAllowTF32CuDNN(recipe.precision == Precision::kTf32);
      at::globalContext().setAllowTF32CuBLAS(recipe.precision == Precision::kTf32);
    }
    lower(lowering);
  }

  void lower(const Lowering& wanted) {
    std::unique_ptr<Executor> next = make_executor(model, wanted);
    next->keep_gradients(keep_gradients);
    if (executor != nullptr) earlier_shared_runs += std::as_const(*executor).shared_runs();
    executor = std::move(next);
    lowering = wanted;
    make_rows();
  }

  void make_rows() try {
    const int rows = padded(width, lowering.chunk);
    if (rows != store.slots()) store.resize(rows);
    slots.resize(static_cast<std::size_t>(rows));
    runs.resize(slots.size());
    steps.resize(slots.size() * groups());
    running().resize();
  } catch (...) {  // the store has rows of the old number and of the new
    executor.reset();
    throw;
  }

  Executor& running() const {
    if (executor != nullptr) return *executor;
    throw Error(ErrorKind::kInternal, "array: lost, since an earlier change of its width or lowering failed");
  }

  Slot& slot(int index) {
    if (index < 0 || index >= width) {
      throw Error(ErrorKind::kInternal, fmt::format("slot: found {}, wanted 0 to {}", index, width - 1));
    }
    return slots[static_cast<std::size_t>(index)];
  }

  std::span<Slot> slots_of(int chunk) {
    return std::span(slots).subspan(static_cast<std::size_t>(chunk) * static_cast<std::size_t>(lowering.chunk),
                                    static_cast<std::size_t>(lowering.chunk));
  }

  // Of parameters, with that of parameters in no group.
  [[nodiscard]] std::size_t groups() const { return recipe.groups.size() + 1; }

  // Whether this batch is the last of the slot's next optimizer step.
  [[nodiscard]] bool updates(const Slot& slot, bool last_batch) const {
    if (!slot.occupied) return false;
    return !recipe.accumulates || last_batch || slot.progress.accumulated + 1 >= slot.init.hyper.accumulate;
  }

  // `rates`: by group; none: 0. Writes to `own`, groups() of them.
  [[nodiscard]] SlotRun run_of(const Slot& slot, std::span<const double> rates, bool last_batch,
                               std::span<SlotStep> own) const {
    for (std::size_t g = 0; g < own.size(); ++g) {
      const bool grouped = slot.occupied && g > 0;
      own[g].updates = updates(slot, last_batch);
      own[g].hyper = grouped ? slot.init.hyper.groups[g - 1] : slot.init.hyper.optimizer;
      own[g].hyper.lr = slot.occupied && !rates.empty() ? rates[g] : 0;
      own[g].step = slot.progress.step + 1;
      own[g].clip_norm = slot.init.hyper.clip_norm;
    }
    SlotRun run;
    run.occupied = slot.occupied;
    run.steps = own;
    run.random = {slot.occupied ? dropout_key(study_seed, slot.init.seed) : 0,
                  static_cast<std::uint64_t>(slot.progress.batches)};
    run.hypers = slot.occupied ? slot.hypers : default_hypers;
    return run;
  }

  void count_batch(Slot& slot, bool last_batch) const {
    const bool stepped = updates(slot, last_batch);
    slot.progress.step += stepped ? 1 : 0;
    slot.progress.batches += 1;
    slot.progress.accumulated = stepped ? 0 : slot.progress.accumulated + 1;
  }

  [[nodiscard]] Slot occupied_by(const SlotInit& init, const SlotProgress& progress) const {
    Slot slot{true, init, progress, default_hypers};
    const auto put = [&](const std::vector<double>& numbers, std::size_t first) {
      if (first + numbers.size() > slot.hypers.size()) {
        throw Error(ErrorKind::kInternal, fmt::format("slot: found {} numbers from {} on, wanted at most {}",
                                                      numbers.size(), first, slot.hypers.size()));
      }
      std::copy(numbers.begin(), numbers.end(), slot.hypers.begin() + static_cast<std::ptrdiff_t>(first));
    };
    put(init.hyper.graph, 0);
    put(init.hyper.loss, model_hypers);
    std::vector<OptimizerHyper>& groups = slot.init.hyper.groups;
    if (groups.size() > recipe.groups.size()) {
      throw Error(ErrorKind::kInternal, fmt::format("slot: found numbers of {} groups of parameters, wanted at most {}",
                                                    groups.size(), recipe.groups.size()));
    }
    groups.resize(recipe.groups.size(), init.hyper.optimizer);
    return slot;
  }

  // By slot of the chunk; `rates` as Array::step has them. Valid until the chunk is asked for again.
  std::span<const SlotRun> runs_of(int chunk, std::span<const double> rates, bool last_batch) {
    const std::span<const Slot> members = slots_of(chunk);
    const auto first = static_cast<std::size_t>(chunk * lowering.chunk);
    const std::span<SlotRun> of_chunk = std::span(runs).subspan(first, members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      of_chunk[i] = run_of(members[i], rates.empty() ? rates : rates.subspan(i * groups(), groups()), last_batch,
                           std::span(steps).subspan((first + i) * groups(), groups()));
    }
    return of_chunk;
  }
};

Array::Array(Graph graph, Recipe recipe, Lowering lowering, int width, std::uint64_t study_seed,
             const at::Device& device, std::shared_ptr<StepGraphBackend> graphs)
    : impl_(std::make_unique<Impl>(std::move(graph), std::move(recipe), std::move(lowering), width, study_seed, device,
                                   std::move(graphs))) {}
Array::~Array() = default;

int Array::width() const { return impl_->width; }
const Lowering& Array::lowering() const { return impl_->lowering; }
bool Array::occupied(int slot) const { return impl_->slot(slot).occupied; }
SlotProgress Array::progress(int slot) const { return impl_->slot(slot).progress; }
const SlotInit& Array::init_of(int slot) const { return impl_->slot(slot).init; }
int Array::rates_per_slot() const { return static_cast<int>(impl_->groups()); }

void Array::admit(int slot, const SlotInit& init) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("admit: slot {} is occupied", slot));
  impl_->store.initialise(slot, impl_->study_seed, init.seed);
  s = impl_->occupied_by(init, {});
}

void Array::insert(int slot, const SlotInit& init, std::span<const std::byte> state) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("insert: slot {} is occupied", slot));
  const SlotProgress progress = progress_from(impl_->store.load(slot, state));
  s = impl_->occupied_by(init, progress);
}

StateBytes Array::extract(int slot) const {
  const Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("extract: slot {} is empty", slot));
  return impl_->store.save(slot, counters_of(s.progress), s.progress.accumulated == 0);
}

void Array::clear(int slot) { impl_->slot(slot) = {}; }

void Array::resize(int width) {
  for (int b = width; b < impl_->width; ++b) {
    if (impl_->slot(b).occupied) throw Error(ErrorKind::kInternal, fmt::format("resize: slot {} is occupied", b));
  }
  impl_->width = width;
  impl_->make_rows();
}

void Array::lower(const Lowering& lowering) { impl_->lower(lowering); }

int Array::chunks() const { return impl_->running().groups(); }
int Array::first_slot(int chunk) const { return chunk * impl_->lowering.chunk; }
int Array::slots_per_chunk() const { return impl_->lowering.chunk; }

void Array::for_each_chunk(const std::function<void(int chunk)>& work) {
  std::vector<int> busy;
  for (int k = 0; k < chunks(); ++k) {
    const auto members = impl_->slots_of(k);
    if (std::any_of(members.begin(), members.end(), [](const Slot& s) { return s.occupied; })) busy.push_back(k);
  }
  impl_->running().for_each(busy, work);
}

void Array::step(int chunk, const Batch& batch, std::span<const double> rates, at::Tensor& losses) {
  impl_->running().step(chunk, batch, impl_->runs_of(chunk, rates, batch.last), losses);
  for (Slot& s : impl_->slots_of(chunk)) {
    if (s.occupied) impl_->count_batch(s, batch.last);
  }
}

at::Tensor Array::fresh_losses(int chunk) { return impl_->running().fresh_losses(chunk); }
StepCounts Array::step_counts() const { return impl_->running().step_counts(); }

at::Tensor Array::predict(int chunk, const Samples& samples) { return evaluate(chunk, samples).front(); }

std::vector<at::Tensor> Array::evaluate(int chunk, const Samples& samples) {
  return impl_->running().predict(chunk, samples, impl_->runs_of(chunk, {}, false));
}

bool Array::shares_layers() const { return impl_->running().shares_layers(); }
void Array::prepare(Samples& samples, bool training) { impl_->running().prepare(samples, training); }

void Array::pause_epoch(int slot, std::int64_t step, double loss, double weight) {
  Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("pause_epoch: slot {} is empty", slot));
  s.progress.epoch_step = step;
  s.progress.epoch_loss = loss;
  s.progress.epoch_weight = weight;
}

void Array::finish_epoch(int chunk) {
  for (Slot& s : impl_->slots_of(chunk)) {
    if (!s.occupied) continue;
    const SlotProgress before = std::exchange(s.progress, {});
    s.progress.step = before.step;
    s.progress.epoch = before.epoch + 1;
    s.progress.batches = before.batches;
  }
}

void Array::keep_gradients(bool keep) {
  impl_->keep_gradients = keep;
  impl_->running().keep_gradients(keep);
}

std::vector<std::pair<std::string, at::Tensor>> Array::gradients(int chunk) const {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const auto& [weight, gradient] : impl_->running().gradients(chunk)) {
    out.emplace_back(impl_->graph.weights[weight].name, gradient);
  }
  return out;
}

std::int64_t Array::bytes_per_slot() const { return impl_->store.bytes_per_slot(); }
std::int64_t Array::shared_bytes() const { return impl_->store.shared_bytes(); }

std::int64_t Array::held_bytes() const {
  return impl_->store.slots() * bytes_per_slot() + shared_bytes() + impl_->running().workspace_bytes();
}

std::int64_t Array::shared_runs() const {
  return impl_->earlier_shared_runs + std::as_const(impl_->running()).shared_runs();
}
std::vector<std::pair<std::string, std::string>> Array::choices() const { return impl_->running().choices(); }

}  // namespace hfta::fusion
