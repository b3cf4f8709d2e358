#include "fusion/array.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "fusion/array/checks.hpp"
#include "fusion/array/libtorch_settings.hpp"
#include "fusion/array/phase.hpp"
#include "fusion/array/pipeline.hpp"
#include "fusion/array/progress.hpp"
#include "fusion/array/slot_table.hpp"
#include "fusion/cpu/encode.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/executors/executors.hpp"
#include "fusion/slots/slot_store.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {
namespace {

int padded(int width, int chunk) { return (width + chunk - 1) / chunk * chunk; }

// The number of the model's hypers, once all arguments were checked: the members behind rely on that.
std::size_t checked_hypers(const Graph& model, const Recipe& recipe, const Lowering& lowering, int width,
                           const at::Device& device) {
  check_arguments(model, recipe, lowering, width, device);
  return model.hypers.size();
}

// A model's squeeze() drops the dimension of the samples, too, where there is one. `slot_dims`: 1 where slots run
// together.
void restore_samples(std::vector<at::Tensor>& outputs, const Graph& graph, int slot_dims) {
  for (std::size_t i = 0; i < outputs.size() && i < graph.outputs.size(); ++i) {
    const Shape& whole = graph.values[static_cast<std::size_t>(graph.outputs[i])].shape;
    const bool by_sample = !whole.empty() && whole.front() == kBatch;
    if (by_sample && outputs[i].dim() + 1 == slot_dims + std::ssize(whole))
      outputs[i] = outputs[i].unsqueeze(slot_dims);
  }
}

}  // namespace

struct Array::Impl {
  std::string device;  // in words, for what is told of it
  Recipe recipe;
  std::size_t model_hypers;  // number of the graph's hypers before the loss's, once all arguments were checked
  PhasesOfStep phases;
  Lowering lowering;
  int width;
  std::uint64_t study_seed;
  SpecializedGraph evaluation;
  std::vector<bool> owned;
  std::optional<Pipeline> pipeline;
  SlotStore store;
  SlotTable slots;
  std::int64_t earlier_shared_runs = 0;  // shared runs of executors before these
  bool keep_gradients = false;
  Collectives* group;
  std::vector<int> parts;  // shares of its ranks, where they divide batches

  Impl(const Graph& g, Recipe r, ArrayOptions o)
      : device(o.device.str()),
        recipe(std::move(r)),
        model_hypers(checked_hypers(g, recipe, o.lowering, o.width, o.device)),
        phases(phases_of(g, recipe)),
        lowering(std::move(o.lowering)),
        width(o.width),
        study_seed(o.study_seed),
        evaluation(specialized(graph(), Purpose::kEvaluation)),
        owned(owned_in(phases)),
        pipeline(o.group != nullptr && o.shares == Shares::kStages
                     ? std::optional(pipeline_of(phases.front()->alone, recipe, owned, *o.group))
                     : std::nullopt),
        store(graph(), owned, trained_in(phases), recipe.accumulates, padded(o.width, lowering.chunk), o.device,
              recipe.compression ? cpu::bounded_layers(graph()).size() : 0,
              pipeline ? held_in_stage(*pipeline, phases.front()->alone.graph, evaluation.graph, owned)
                       : std::vector<bool>()),
        slots(recipe, phases, model_hypers, study_seed),
        group(o.group),
        parts(std::move(o.parts)) {
    if (divides_batches() && parts.empty()) parts.assign(static_cast<std::size_t>(group->ranks()), 1);
    check_recipe(g, recipe, o.device, group, divides_batches() ? std::span<const int>(parts) : std::span<const int>());
    set_libtorch(o.device, recipe.precision);
    for (std::size_t p = 0; p < phases.size(); ++p) {
      PhaseOfStep& phase = *phases[p];
      phase.training = specialized(phase.graph, Purpose::kTrainingTogether);
      phase.model.emplace(ExecutorModel{phase.graph, phase.recipe, phase.alone, phase.training, evaluation, owned,
                                        phase.group_of, store, o.device, o.graphs, p, !recipe.phases.empty(),
                                        divides_batches() ? group : nullptr, pipeline ? &*pipeline : nullptr});
    }
    lower(lowering);
  }

  [[nodiscard]] bool divides_batches() const { return group != nullptr && !pipeline; }

  // The first phase's graph, whose weights, inputs and hypers are those of all.
  [[nodiscard]] const Graph& graph() const { return phases.front()->graph; }

  void lower(const Lowering& wanted) {
    check_lowering(wanted);
    std::vector<std::unique_ptr<Executor>> next;
    for (const auto& phase : phases) {
      next.push_back(make_executor(*phase->model, wanted));
      next.back()->keep_gradients(keep_gradients);
    }
    for (std::size_t p = 0; p < phases.size(); ++p) {
      std::unique_ptr<Executor>& executor = phases[p]->executor;
      if (executor != nullptr) earlier_shared_runs += std::as_const(*executor).shared_runs();
      executor = std::move(next[p]);
    }
    lowering = wanted;
    make_rows();
  }

  void make_rows() try {
    const int rows = padded(width, lowering.chunk);
    if (rows != store.slots()) store.resize(rows);
    slots.resize(static_cast<std::size_t>(rows));
    for (std::size_t p = 0; p < phases.size(); ++p) running(p).resize();
  } catch (...) {  // the store has rows of the old number and of the new
    for (const auto& phase : phases) phase->executor.reset();
    throw;
  }

  Executor& running(std::size_t phase = 0) const {
    if (phases[phase]->executor != nullptr) return *phases[phase]->executor;
    throw Error(ErrorKind::kInternal, "array: lost, since an earlier change of its width or lowering failed");
  }

  Slot& slot(int index) {
    static_cast<void>(running());
    if (index < 0 || index >= width) {
      throw Error(ErrorKind::kInternal, fmt::format("slot: found {}, wanted 0 to {}", index, width - 1));
    }
    return slots.at(static_cast<std::size_t>(index));
  }

  [[nodiscard]] SlotRange range_of(int chunk) const {
    if (chunk < 0 || chunk >= running().chunks()) {
      throw Error(ErrorKind::kInternal, fmt::format("chunk: found {}, wanted 0 to {}", chunk, running().chunks() - 1));
    }
    const auto count = static_cast<std::size_t>(lowering.chunk);
    return {static_cast<std::size_t>(chunk) * count, count};
  }

  void check_step(int chunk, const Batch& batch, std::span<const double> rates, std::span<const at::Tensor> losses) {
    const std::size_t slots_here = range_of(chunk).count, rates_here = slots_here * slots.rates_per_slot();
    const auto parts_here = static_cast<int>(batch.parts.size());
    const bool parted = std::all_of(batch.part_of.begin(), batch.part_of.end(),
                                    [&](int part) { return part >= 0 && part < parts_here; });
    if (parts_here > 0 && parted && (batch.part_of.empty() || batch.part_of.size() >= slots_here) &&
        losses.size() == phases.size() && (rates.empty() || rates.size() >= rates_here)) {
      for (const Samples& part : batch.parts) check_samples(part, graph());
      for (const at::Tensor& loss : losses) check_losses(loss, slots_here);
      return;
    }
    throw Error(ErrorKind::kInternal,
                fmt::format("step: found {} parts of a batch, dealt to {} slots, {} rates and {} losses; wanted parts, "
                            "one for each of {} slots, at least {} rates and {} losses",
                            parts_here, batch.part_of.size(), rates.size(), losses.size(), slots_here, rates_here,
                            phases.size()));
  }

  // One phase of a step. Layers that slots share were run for the first phase alone.
  void step(int chunk, std::size_t phase, const Batch& batch, std::span<const double> rates, at::Tensor& losses) {
    const std::span<SlotRun> of_chunk = slots.runs_of(range_of(chunk), phase, rates, batch.last);
    for (SlotRun& run : of_chunk) {
      run.random.samples = static_cast<std::uint64_t>(batch.parts.front().size());
      run.random.earlier = static_cast<std::uint64_t>(batch.earlier);
    }
    if (phase == 0) return running().step(chunk, batch, of_chunk, losses);
    Batch own = batch;
    for (Samples& part : own.parts) part.shared = nullptr;
    running(phase).step(chunk, own, of_chunk, losses);
    slots.count_step(range_of(chunk), phase);
  }
};

Array::Array(const Graph& graph, Recipe recipe, ArrayOptions options)
    : impl_(with_faults_told(options.device.str(),
                             [&] { return std::make_unique<Impl>(graph, std::move(recipe), std::move(options)); })) {}
Array::~Array() = default;

int Array::width() const { return impl_->width; }
Collectives* Array::group() const { return impl_->group; }
const std::vector<int>& Array::parts() const { return impl_->parts; }
bool Array::divides_batches() const { return impl_->divides_batches(); }
bool Array::has_answers() const { return !impl_->pipeline || impl_->pipeline->is_last(); }
const Lowering& Array::lowering() const { return impl_->lowering; }
bool Array::occupied(int slot) const { return impl_->slot(slot).occupied; }
SlotProgress Array::progress(int slot) const { return impl_->slot(slot).progress; }
const SlotInit& Array::init_of(int slot) const { return impl_->slot(slot).init; }
int Array::rates_per_slot() const { return static_cast<int>(impl_->slots.rates_per_slot()); }
int Array::phases() const { return static_cast<int>(impl_->phases.size()); }

void Array::admit(int slot, const SlotInit& init) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("admit: slot {} is occupied", slot));
  Slot next = impl_->slots.occupied_by(init, {});
  with_faults_told(impl_->device, [&] { impl_->store.initialise(slot, impl_->study_seed, init.seed, next.hypers); });
  s = std::move(next);
}

void Array::insert(int slot, const SlotInit& init, std::span<const std::byte> state) {
  Slot& s = impl_->slot(slot);
  if (s.occupied) throw Error(ErrorKind::kInternal, fmt::format("insert: slot {} is occupied", slot));
  const SlotProgress progress =
      with_faults_told(impl_->device, [&] { return progress_from(impl_->store.load(slot, state)); });
  s = impl_->slots.occupied_by(init, progress);
}

StateBytes Array::extract(int slot) const {
  const Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("extract: slot {} is empty", slot));
  StateBytes own = with_faults_told(
      impl_->device, [&] { return impl_->store.save(slot, counters_of(s.progress), s.progress.accumulated == 0); });
  return impl_->pipeline ? impl_->store.joined(of_all_ranks(*impl_->group, std::move(own))) : own;
}

std::vector<std::pair<std::string, at::Tensor>> Array::weights(int slot) const {
  const Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("weights: slot {} is empty", slot));
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (std::size_t i = 0; i < impl_->graph().weights.size(); ++i) {
    const Weight& weight = impl_->graph().weights[i];
    at::Tensor own = impl_->store.weight(i);
    const bool held = own.numel() > 0 || elements_of(weight.shape, 1) == 0;
    if (!held) continue;
    if (impl_->store.owned(i)) own = own.select(0, slot);
    if (weight.padding) {
      const double used = s.hypers[static_cast<std::size_t>(weight.padding->used.index)];
      own = own.narrow(static_cast<std::int64_t>(weight.padding->dim), 0, static_cast<std::int64_t>(used));
    }
    own = own.detach().to(at::kCPU, own.scalar_type(), /*non_blocking=*/false, /*copy=*/true).contiguous();
    all.emplace_back(weight.name, weight.pairs ? at::view_as_complex(own) : own);
  }
  return all;
}

void Array::clear(int slot) { impl_->slot(slot) = {}; }

void Array::resize(int width) {
  check_width(width);
  for (int b = width; b < impl_->width; ++b) {
    if (impl_->slot(b).occupied) throw Error(ErrorKind::kInternal, fmt::format("resize: slot {} is occupied", b));
  }
  with_faults_told(impl_->device, [&] {
    impl_->width = width;
    impl_->make_rows();
  });
}

void Array::lower(const Lowering& lowering) {
  with_faults_told(impl_->device, [&] { impl_->lower(lowering); });
}

int Array::chunks() const { return impl_->running().chunks(); }
int Array::first_slot(int chunk) const {
  static_cast<void>(impl_->range_of(chunk));  // throws where there is no such chunk
  return chunk * impl_->lowering.chunk;
}
int Array::slots_per_chunk() const { return impl_->lowering.chunk; }

void Array::for_each_chunk(const std::function<void(int chunk)>& work) {
  std::vector<int> busy;
  for (int k = 0; k < chunks(); ++k) {
    const std::span<const Slot> members = impl_->slots.of(impl_->range_of(k));
    if (std::any_of(members.begin(), members.end(), [](const Slot& s) { return s.occupied; })) busy.push_back(k);
  }
  if (!impl_->divides_batches()) return impl_->running().for_each(busy, work);
  for (const int& k : busy) impl_->running().for_each(std::span(&k, 1), work);  // ranks call their group in one order
}

void Array::step(int chunk, const Batch& batch, std::span<const double> rates, std::span<at::Tensor> losses) {
  impl_->check_step(chunk, batch, rates, losses);
  with_faults_told(impl_->device, [&] {
    for (std::size_t p = 0; p < impl_->phases.size(); ++p) {
      if (has_turn(impl_->recipe, p, batch.place)) impl_->step(chunk, p, batch, rates, losses[p]);
    }
  });
  impl_->slots.count_batch(impl_->range_of(chunk), batch);
}

std::vector<at::Tensor> Array::fresh_losses(int chunk) {
  static_cast<void>(impl_->range_of(chunk));  // throws where there is no such chunk
  std::vector<at::Tensor> losses;
  for (std::size_t p = 0; p < impl_->phases.size(); ++p) losses.push_back(impl_->running(p).fresh_losses(chunk));
  return losses;
}
StepCounts Array::step_counts() const { return impl_->running().step_counts(); }

at::Tensor Array::predict(int chunk, const Samples& samples) {
  const std::vector<at::Tensor> outputs = evaluate(chunk, samples);
  return outputs.empty() ? at::Tensor() : outputs.front();
}

std::vector<at::Tensor> Array::evaluate(int chunk, const Samples& samples) {
  check_samples(samples, impl_->evaluation.graph);
  return with_faults_told(impl_->device, [&] {
    std::vector<at::Tensor> outputs =
        impl_->running().predict(chunk, samples, impl_->slots.runs_of(impl_->range_of(chunk), 0, {}, false));
    if (samples.size() == 1) restore_samples(outputs, impl_->evaluation.graph, slots_per_chunk() > 1 ? 1 : 0);
    return outputs;
  });
}

bool Array::shares_layers() const { return impl_->running().shares_layers(); }
void Array::prepare(Samples& samples, SampleUse use) {
  with_faults_told(impl_->device, [&] { impl_->running().prepare(samples, use); });
}

void Array::pause_epoch(int slot, std::int64_t step, std::span<const double> sums) {
  Slot& s = impl_->slot(slot);
  if (!s.occupied) throw Error(ErrorKind::kInternal, fmt::format("pause_epoch: slot {} is empty", slot));
  if (step < 0 || sums.size() != 2 * impl_->phases.size()) {
    throw Error(ErrorKind::kInternal, fmt::format("pause_epoch: found step {} and {} sums, wanted at least 0 and {}",
                                                  step, sums.size(), 2 * impl_->phases.size()));
  }
  s.progress.epoch_step = step;
  s.progress.epoch_loss = sums[0];
  s.progress.epoch_weight = sums[1];
  for (std::size_t p = 1; p < impl_->phases.size(); ++p) {
    s.progress.later[p - 1].epoch_loss = sums[2 * p];
    s.progress.later[p - 1].epoch_weight = sums[2 * p + 1];
  }
}

void Array::finish_epoch(int chunk) {
  for (Slot& s : impl_->slots.of(impl_->range_of(chunk))) {
    if (!s.occupied) continue;
    const SlotProgress before = std::exchange(s.progress, {});
    s.progress.step = before.step;
    s.progress.epoch = before.epoch + 1;
    s.progress.batches = before.batches;
    for (const PhaseProgress& phase : before.later) s.progress.later.push_back({phase.step});
  }
}

void Array::keep_gradients() {
  impl_->keep_gradients = true;
  for (std::size_t p = 0; p < impl_->phases.size(); ++p) impl_->running(p).keep_gradients(true);
}

std::vector<std::pair<std::string, at::Tensor>> Array::gradients(int chunk) const {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const auto& [weight, gradient] : impl_->running().gradients(chunk)) {
    out.emplace_back(impl_->graph().weights[weight].name, gradient);
  }
  return out;
}

std::int64_t Array::bytes_per_slot() const { return impl_->store.bytes_per_slot(); }
std::int64_t Array::shared_bytes() const { return impl_->store.shared_bytes(); }

std::int64_t Array::held_bytes() const {
  std::int64_t bytes = impl_->store.slots() * bytes_per_slot() + shared_bytes();
  for (std::size_t p = 0; p < impl_->phases.size(); ++p) bytes += impl_->running(p).workspace_bytes();
  return bytes;
}

std::int64_t Array::shared_runs() const {
  return impl_->earlier_shared_runs + std::as_const(impl_->running()).shared_runs();
}
std::vector<std::pair<std::string, std::string>> Array::choices() const { return impl_->running().choices(); }

}  // namespace hfta::fusion
