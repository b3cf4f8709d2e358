#include "fusion/array.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "fusion/array/chunk.hpp"
#include "fusion/array/compiled.hpp"
#include "fusion/array/lanes.hpp"
#include "fusion/array/live_step.hpp"
#include "fusion/array/loss.hpp"
#include "fusion/array/optimizer.hpp"
#include "fusion/array/program.hpp"
#include "fusion/array/progress.hpp"
#include "fusion/array/schema.hpp"
#include "fusion/array/slot_store.hpp"
#include "fusion/array/workers.hpp"
#include "fusion/cpu/kernels/counted_mask.hpp"

namespace hfta::fusion {
namespace {

struct Slot {
  bool occupied = false;
  SlotInit init;
  SlotProgress progress;
};

int padded(int width, int chunk) { return (width + chunk - 1) / chunk * chunk; }

}  // namespace

struct Array::Impl {
  Graph graph;
  Recipe recipe;
  Lowering lowering;
  int width;
  std::uint64_t study_seed;
  at::Device device;
  std::shared_ptr<GraphBackend> graphs;
  Reading alone;     // the training reading of one slot by itself
  Reading training;  // the same with batch statistics that slots share
  Reading evaluation;
  std::vector<bool> owned;
  SlotStore store;
  std::unique_ptr<Program> trainer, evaluator;
  std::unique_ptr<CompiledModel> compiled;  // in their place where the lowering says so
  std::unique_ptr<Workers> workers;
  std::vector<Slot> slots;
  std::vector<Chunk> chunks;
  std::optional<Lanes> lanes;
  std::optional<LiveModel> live;                      // where steps are made by LiveStep
  std::vector<std::unique_ptr<LiveStep>> live_steps;  // then, by chunk
  std::vector<double> default_hypers;
  bool keep_gradients = false;
  std::atomic<std::int64_t> shared_runs = 0;

  Impl(Graph g, Recipe r, Lowering l, int w, std::uint64_t seed, const at::Device& d, std::shared_ptr<GraphBackend> gs)
      : graph(with_complete_arguments(std::move(g))),
        recipe(std::move(r)),
        lowering(std::move(l)),
        width(w),
        study_seed(seed),
        device(d),
        graphs(std::move(gs)),
        alone(training_reading(graph)),
        training(alone),
        evaluation(evaluation_reading(graph)),
        owned(owned_weights(alone)),
        store(graph, owned, recipe.optimizer, padded(w, lowering.chunk), device) {
    training = with_shared_statistics(alone, owned);
    for (const Hyper& hyper : graph.hypers) default_hypers.push_back(hyper.value);
    if (recipe.dtype == DType::kFloat64 && recipe.precision != Precision::kFloat32) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("precision: found {} with dtype float64, wanted float32", name_of(recipe.precision)));
    }
    if (!device.is_cpu()) {  // LibTorch keeps this for the whole process
      at::globalContext().setAllowTF32CuDNN(recipe.precision == Precision::kTf32);
      at::globalContext().setAllowTF32CuBLAS(recipe.precision == Precision::kTf32);
    }
    lower(lowering);
  }

  void lower(const Lowering& wanted) {
    if (wanted.compiled && (wanted.chunk != 1 || !device.is_cpu())) {
      throw Error(ErrorKind::kConfig,
                  "lowering: found compiled in chunks or beside a CPU, wanted one slot at a time on a CPU");
    }
    auto new_compiled = wanted.compiled ? std::make_unique<CompiledModel>(alone, evaluation, recipe, store) : nullptr;
    auto new_trainer = std::make_unique<Program>(training, owned, wanted, device, recipe.precision);
    auto new_evaluator = std::make_unique<Program>(evaluation, owned, wanted, device, recipe.precision);
    trainer = std::move(new_trainer);
    evaluator = std::move(new_evaluator);
    compiled = std::move(new_compiled);
    lowering = wanted;
    rebuild();
  }

  void rebuild() {
    const int rows = padded(width, lowering.chunk);
    if (rows != store.slots()) store.resize(rows);
    slots.resize(static_cast<std::size_t>(rows));
    live_steps.clear();
    chunks.clear();
    for (int first = 0; first < rows; first += lowering.chunk) {
      chunks.emplace_back(graph, owned, store, recipe.optimizer, first, lowering.chunk);
    }
    lanes.emplace(device, static_cast<int>(chunks.size()), graphs.get());
    make_live_steps();
    const int wanted = std::max(1, std::min<int>(lowering.workers, static_cast<int>(chunks.size())));
    workers = std::make_unique<Workers>(wanted, lowering.threads_per_worker);
  }

  // On a GPU, or where graphs are to be made, numbers of a step lie on the device.
  void make_live_steps() {
    live.reset();
    if (compiled != nullptr || (device.is_cpu() && graphs == nullptr) || !has_live_kernels(device)) return;
    live.emplace(LiveModel{*trainer, recipe, lowering.chunk, static_cast<int>(graph.hypers.size()), device,
                           trainer->why_not_replayed(), shared_runs});
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      live_steps.push_back(std::make_unique<LiveStep>(*live, chunks[k], lanes->of_chunk(static_cast<int>(k))));
    }
  }

  Slot& slot(int index) {
    if (index < 0 || index >= width) {
      throw Error(ErrorKind::kInternal, fmt::format("slot: found {}, wanted 0 to {}", index, width - 1));
    }
    return slots[static_cast<std::size_t>(index)];
  }

  std::span<Slot> slots_of(int chunk) {
    return std::span(slots).subspan(static_cast<std::size_t>(chunk * lowering.chunk),
                                    static_cast<std::size_t>(lowering.chunk));
  }

  // What slots compute alike of some samples.
  std::shared_ptr<const Flow> share(const Samples& samples, bool for_training) {
    if (samples.shared != nullptr) return samples.shared;
    if (for_training) ++shared_runs;
    const Program& program = for_training ? *trainer : *evaluator;
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& input : samples.inputs) inputs.push_back(samples.of(input));
    return std::make_shared<const Flow>(program.share(inputs, chunks.front().leaves));
  }

  [[nodiscard]] SlotRandom random_of(const Slot& s) const {
    return {s.occupied ? dropout_key(study_seed, s.init.seed) : 0, static_cast<std::uint64_t>(s.progress.step)};
  }

  [[nodiscard]] const std::vector<double>& hypers_of(const Slot& s) const {
    return s.occupied && !s.init.hyper.graph.empty() ? s.init.hyper.graph : default_hypers;
  }

  [[nodiscard]] CompiledSlot compiled_slot(int index) const {
    const Slot& s = slots[static_cast<std::size_t>(index)];
    return {index, random_of(s), hypers_of(s), s.init.hyper.label_smoothing};
  }

  at::Tensor run(int chunk, const Program& program, std::span<const Flow* const> shared) {
    std::vector<SlotRandom> random;
    std::vector<std::vector<double>> hypers;
    for (const Slot& s : slots_of(chunk)) {
      random.push_back(random_of(s));
      hypers.push_back(hypers_of(s));
    }
    const RunContext context{wide(), random, hypers, device};
    return program.run(shared, chunks[static_cast<std::size_t>(chunk)].leaves, context);
  }

  [[nodiscard]] static int part_of(const Batch& batch, int slot_of_chunk) {
    return batch.part_of.empty() ? 0 : batch.part_of[static_cast<std::size_t>(slot_of_chunk)];
  }

  at::Tensor forward(int chunk, const Batch& batch) {
    std::vector<std::shared_ptr<const Flow>> parts(batch.parts.size());
    std::vector<const Flow*> of_slot;
    for (int i = 0; i < lowering.chunk; ++i) {
      const auto part = static_cast<std::size_t>(part_of(batch, i));
      if (parts[part] == nullptr) parts[part] = share(batch.parts[part], true);
      of_slot.push_back(parts[part].get());
    }
    return run(chunk, *trainer, of_slot);
  }

  // Targets as the loss takes them: [c, N, ...], or [N, ...] for one slot.
  [[nodiscard]] at::Tensor targets(const Batch& batch) const {
    std::vector<at::Tensor> rows;
    for (int i = 0; i < lowering.chunk; ++i) {
      const Samples& part = batch.parts[static_cast<std::size_t>(part_of(batch, i))];
      rows.push_back(part.of(part.target));
    }
    if (lowering.chunk == 1) return rows.front();
    return at::stack(rows);
  }

  /// c, or 0 where the program runs without a slot dimension.
  [[nodiscard]] int wide() const { return lowering.chunk == 1 ? 0 : lowering.chunk; }

  [[nodiscard]] static SlotStep numbers_of(const Slot& slot, double rate) {
    SlotStep s;
    s.occupied = slot.occupied;
    s.hyper = slot.init.hyper.optimizer;
    s.hyper.lr = s.occupied ? rate : 0;
    s.step = slot.progress.step + 1;
    s.clip_norm = slot.init.hyper.clip_norm;
    return s;
  }

  void step_compiled(int index, const Batch& batch, double rate, at::Tensor& losses) {
    Slot& slot = slots[static_cast<std::size_t>(index)];
    if (!slot.occupied) return;
    const Samples& samples = batch.parts[static_cast<std::size_t>(part_of(batch, 0))];
    Chunk& chunk = chunks[static_cast<std::size_t>(index)];
    const double loss = compiled->step(compiled_slot(index), samples, numbers_of(slot, rate),
                                       keep_gradients ? &chunk.kept_gradients : nullptr);
    *losses.data_ptr<double>() += loss * static_cast<double>(samples.size());
    ++slot.progress.step;
  }

  void step_live(int chunk, const Batch& batch, std::span<const double> rates, const at::Tensor& losses) {
    const Lane::Turn turn(lanes->of_chunk(chunk));
    std::vector<LiveSlot> numbers;
    for (const Slot& s : slots_of(chunk)) {
      numbers.push_back(
          {numbers_of(s, rates[numbers.size()]), random_of(s), hypers_of(s), s.init.hyper.label_smoothing});
    }
    live_steps[static_cast<std::size_t>(chunk)]->run(batch, numbers, losses, keep_gradients);
  }

  void step_plain(int chunk, const Batch& batch, std::span<const double> rates, at::Tensor& losses) {
    const at::AutoGradMode record(true);
    std::vector<double> smoothing;
    std::vector<SlotStep> steps;
    for (const Slot& s : slots_of(chunk)) {
      smoothing.push_back(s.init.hyper.label_smoothing);
      steps.push_back(numbers_of(s, rates[steps.size()]));
    }
    const at::Tensor output = forward(chunk, batch);
    const at::Tensor loss = slot_loss(recipe.loss, output, targets(batch), wide(), smoothing);
    backward(loss);
    std::vector<ParameterSlots> reached = chunks[static_cast<std::size_t>(chunk)].take_gradients(keep_gradients);
    fusion::step(recipe.optimizer, reached, steps);
    losses.add_(loss.detach().to(at::kDouble).view({-1}), static_cast<double>(batch.parts.front().size()));
  }
};

std::int64_t Samples::size() const {
  if (end >= 0) return end - begin;
  return (order.defined() ? order.size(0) : target.size(0)) - begin;
}

at::Tensor Samples::of(const at::Tensor& all) const {
  const std::int64_t n = size();
  if (order.defined()) return all.index_select(0, order.narrow(0, begin, n));
  return n == all.size(0) ? all : all.narrow(0, begin, n);
}

Array::Array(Graph graph, Recipe recipe, Lowering lowering, int width, std::uint64_t study_seed,
             const at::Device& device, std::shared_ptr<GraphBackend> graphs)
    : impl_(std::make_unique<Impl>(std::move(graph), std::move(recipe), std::move(lowering), width, study_seed, device,
                                   std::move(graphs))) {}
Array::~Array() = default;

int Array::width() const { return impl_->width; }
const Lowering& Array::lowering() const { return impl_->lowering; }
bool Array::occupied(int slot) const { return impl_->slot(slot).occupied; }
SlotProgress Array::progress(int slot) const { return impl_->slot(slot).progress; }
const SlotInit& Array::init_of(int slot) const { return impl_->slot(slot).init; }

void Array::admit(int slot, const SlotInit& init) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("admit: slot {} is occupied", slot));
  impl_->store.initialise(slot, impl_->study_seed, init.seed);
  s = {true, init, {}};
}

void Array::insert(int slot, const SlotInit& init, std::span<const std::byte> state) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("insert: slot {} is occupied", slot));
  const SlotProgress progress = progress_from(impl_->store.load(slot, state));
  s = {true, init, progress};
}

StateBytes Array::extract(int slot) const {
  const Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("extract: slot {} is empty", slot));
  return impl_->store.save(slot, counters_of(s.progress));
}

void Array::clear(int slot) { impl_->slot(slot) = {}; }

void Array::resize(int width) {
  for (int b = width; b < impl_->width; ++b) {
    if (impl_->slot(b).occupied) throw Error(ErrorKind::kInternal, fmt::format("resize: slot {} is occupied", b));
  }
  impl_->width = width;
  impl_->rebuild();
}

void Array::lower(const Lowering& lowering) { impl_->lower(lowering); }

int Array::chunks() const { return static_cast<int>(impl_->chunks.size()); }
int Array::first_slot(int chunk) const { return chunk * impl_->lowering.chunk; }
int Array::slots_per_chunk() const { return impl_->lowering.chunk; }

void Array::for_each_chunk(const std::function<void(int chunk)>& work) {
  std::vector<int> busy;
  for (int k = 0; k < chunks(); ++k) {
    const auto members = impl_->slots_of(k);
    if (std::any_of(members.begin(), members.end(), [](const Slot& s) { return s.occupied; })) busy.push_back(k);
  }
  impl_->lanes->fork();
  try {
    impl_->workers->run(static_cast<int>(busy.size()), [&](int i) {
      const int chunk = busy[static_cast<std::size_t>(i)];
      const auto on_lane = Lanes::on(impl_->lanes->of_chunk(chunk));
      work(chunk);
    });
  } catch (...) {
    impl_->lanes->join();
    throw;
  }
  impl_->lanes->join();
}

void Array::step(int chunk, const Batch& batch, std::span<const double> rates, at::Tensor& losses) {
  if (impl_->compiled != nullptr) return impl_->step_compiled(chunk, batch, rates[0], losses);
  if (impl_->live) {
    impl_->step_live(chunk, batch, rates, losses);
  } else {
    impl_->step_plain(chunk, batch, rates, losses);
  }
  for (Slot& s : impl_->slots_of(chunk)) s.progress.step += s.occupied ? 1 : 0;
}

at::Tensor Array::fresh_losses(int chunk) {
  if (impl_->live) {
    const Lane::Turn turn(impl_->lanes->of_chunk(chunk));
    return impl_->live_steps.at(static_cast<std::size_t>(chunk))->fresh_losses();
  }
  return at::zeros({slots_per_chunk()}, at::TensorOptions().dtype(at::kDouble).device(impl_->device));
}

StepCounts Array::step_counts() const {
  StepCounts all;
  for (const auto& step : impl_->live_steps) {
    const StepCounts& counts = step->counts();
    all.captured += counts.captured;
    all.replayed += counts.replayed;
    all.eager += counts.eager;
    if (all.why_eager.empty()) all.why_eager = counts.why_eager;
  }
  return all;
}

at::Tensor Array::predict(int chunk, const Samples& samples) {
  if (impl_->compiled != nullptr) return impl_->compiled->predict(impl_->compiled_slot(chunk), samples);
  const at::NoGradGuard no_gradients;
  const Lane::Turn turn(impl_->lanes->of_chunk(chunk));
  const std::shared_ptr<const Flow> shared = impl_->share(samples, false);
  const Flow* const part = shared.get();
  return impl_->run(chunk, *impl_->evaluator,
                    std::vector<const Flow*>(static_cast<std::size_t>(slots_per_chunk()), part));
}

// Where steps are captured, one chunk by itself had better compute what its slots share within the step.
bool Array::shares_layers() const {
  if (impl_->compiled != nullptr || (impl_->live && chunks() == 1)) return false;
  return impl_->trainer->shares_layers();
}

void Array::prepare(Samples& samples, bool training) {
  if (samples.shared == nullptr) impl_->workers->run_alone([&] { samples.shared = impl_->share(samples, training); });
}

void Array::pause_epoch(int slot, std::int64_t step, double loss) {
  Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("pause_epoch: slot {} is empty", slot));
  s.progress.epoch_step = step;
  s.progress.epoch_loss = loss;
}

void Array::finish_epoch(int chunk) {
  for (Slot& s : impl_->slots_of(chunk)) {
    if (s.occupied) s.progress = {s.progress.step, s.progress.epoch + 1};
  }
}

void Array::keep_gradients(bool keep) { impl_->keep_gradients = keep; }

std::vector<std::pair<std::string, at::Tensor>> Array::gradients(int chunk) const {
  const Chunk& own = impl_->chunks.at(static_cast<std::size_t>(chunk));
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (std::size_t k = 0; k < own.kept_gradients.size(); ++k) {
    out.emplace_back(impl_->graph.weights[own.trained[k]].name, own.kept_gradients[k]);
  }
  return out;
}

std::int64_t Array::bytes_per_slot() const { return impl_->store.bytes_per_slot(); }

std::int64_t Array::shared_bytes() const { return impl_->store.shared_bytes(); }

std::int64_t Array::held_bytes() const {
  const std::int64_t at_work = std::min(impl_->lowering.workers, chunks());
  return impl_->store.slots() * bytes_per_slot() + shared_bytes() +
         (impl_->compiled != nullptr ? at_work * impl_->compiled->workspace_bytes() : 0);
}

std::int64_t Array::shared_runs() const { return impl_->shared_runs; }

std::vector<std::pair<std::string, std::string>> Array::choices() const { return impl_->trainer->choices(); }

}  // namespace hfta::fusion
