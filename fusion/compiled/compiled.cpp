#include "fusion/compiled/compiled.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "base/error.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "fusion/compiled/views.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/simd/denormals.hpp"
#include "fusion/slots/scalar_type.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {
namespace {

// Copies the samples of `all` to `out`, one behind another.
void gather(const SampleArray& all, const Samples& samples, const cpu::Tensor& wanted, std::byte* out) {
  const std::int64_t n = samples.size();
  const bool fits = all.type() == scalar_type(wanted.dtype) && all.stride() * n == wanted.numel();
  if (!fits)
    throw Error(ErrorKind::kConfig, "data: found samples of another type or size than the compiled model takes");
  const bool ordered = samples.order.defined();
  all.copy(ordered ? samples.order.const_data_ptr<std::int64_t>() + samples.begin : nullptr, samples.begin, n, out);
}

}  // namespace

// What one thread, or a team, works with.
struct CompiledModel::Workspace {
  cpu::Arena arena;
  EncodedValues encoded;
  std::unique_ptr<Learning::Memory> learning;
  std::vector<std::byte> message;  // what travels between stages
  std::vector<double> squares;     // Learning::Step::squares
};

// A workspace for the time of one call.
class CompiledModel::Borrowed {
 public:
  explicit Borrowed(CompiledModel& model) : model_(model) {
    const std::lock_guard lock(model.mutex_);
    if (model.idle_.empty()) {
      mine_ = std::make_unique<Workspace>();
      mine_->learning = model.learning_.make_memory();
      model.idle_.reserve(static_cast<std::size_t>(++model.workspaces_));  // giving it back allocates nothing
    } else {
      mine_ = std::move(model.idle_.back());
      model.idle_.pop_back();
    }
  }
  ~Borrowed() {
    const std::lock_guard lock(model_.mutex_);
    model_.idle_.push_back(std::move(mine_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Workspace& operator*() { return *mine_; }

 private:
  CompiledModel& model_;
  std::unique_ptr<Workspace> mine_;
};

CompiledModel::CompiledModel(const ExecutorModel& model, int threads, int recompute)
    : training_(model.alone),
      evaluation_(model.evaluation),
      owned_(model.owned),
      recipe_(model.recipe),
      threads_(threads),
      recompute_(recompute),
      use_(gradient_use(recipe_)),
      bounds_(bounds_in(model.graph, recipe_)),
      store_(model.store),
      learning_(model, recipe_, bounds_),
      pipeline_(model.pipeline),
      library_(torch_library()) {
  check_precision(recipe_);
  if (pipeline_ != nullptr) link_.emplace(*pipeline_, std::exchange(threads_, 1));
  const std::int64_t n = training_batch(training_.graph, recipe_);
  static_cast<void>(plan_for(use_, n));
  if (model.phase == 0) static_cast<void>(plan_for(std::nullopt, n));  // the first phase evaluates for all
}

CompiledModel::~CompiledModel() = default;

cpu::CompiledStage CompiledModel::compiled(std::optional<GradientUse> use, std::int64_t n) const {
  if (use) {
    return training_stage(training_, recipe_, n,
                          {.library = library_.get(), .threads = threads_, .recompute = recompute_}, bounds_, *use,
                          pipeline_);
  }
  const Graph graph = with_owned(evaluation_.graph, owned_);
  return cpu::compile(
      of_stage(forward_request(graph, evaluation_.index, recipe_, n, library_.get(), threads_), pipeline_));
}

const cpu::CompiledStage& CompiledModel::plan_for(std::optional<GradientUse> use, std::int64_t n) {
  const std::lock_guard lock(mutex_);
  const std::pair<std::optional<GradientUse>, std::int64_t> key(use, n);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return *known->second;
  return *plans_.emplace(key, std::make_unique<const cpu::CompiledStage>(compiled(use, n))).first->second;
}

std::int64_t CompiledModel::workspace_bytes() {
  const std::lock_guard lock(mutex_);
  std::size_t most = 0;
  for (const auto& [key, plan] : plans_) most = std::max(most, plan->plan.arena_bytes);
  std::int64_t encoded = 0;
  for (const auto& workspace : idle_) encoded = std::max(encoded, workspace->encoded.held_bytes());
  return static_cast<std::int64_t>(most) + encoded;
}

void CompiledModel::bind(const cpu::CompiledGraph& plan, std::span<std::byte*> buffers, int row) const {
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    const at::Tensor& rows = store_.weight(i);
    auto* const base = static_cast<std::byte*>(rows.data_ptr());
    const auto bytes = static_cast<std::int64_t>(rows.nbytes());
    buffers[static_cast<std::size_t>(plan.weights[i].buffer)] =
        store_.owned(i) ? base + bytes / store_.slots() * row : base;
  }
}

// Makes the run of one slot. Results stay in its buffers until the workspace is used again.
cpu::Run CompiledModel::begin(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                              const Samples& samples) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  bind(plan, buffers, slot.row);
  const auto fill = [&](const SampleArray& from, const cpu::Tensor& to) {
    if (to.defined()) gather(from, samples, to, buffers[static_cast<std::size_t>(to.buffer)]);
  };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) fill(samples.array(i), plan.inputs[i]);
  return {buffers, slot.hypers, slot.random, workspace.arena.kept(), slot.team};
}

// Memory for Learning::Step::squares; none for a slot that is not clipped by other stages' gradients.
std::span<double> CompiledModel::squares_for(std::span<const SlotStep> numbers, Workspace& workspace) const {
  const SlotStep& slot = numbers.front();
  if (!link_ || !slot.updates || slot.clip_norm.value_or(-1) < 0) return {};
  workspace.squares.assign(training_.graph.weights.size(), 0);
  return workspace.squares;
}

// Waits until the stage before is done with the slot, which needs no memory here until then.
void CompiledModel::enter_stage(int row, std::optional<Turns::Turn>& place) {
  if (!link_) return;
  link_->await(row);
  place.emplace(link_->places());
}

// Runs the kernels of the forward, and exchanges what travels between stages.
void CompiledModel::forward(const cpu::CompiledStage& stage, const cpu::Run& run, const StageLink::Run& here) {
  const auto kernels = [&] {
    for (std::size_t k = 0; k < stage.plan.backward; ++k) stage.plan.kernels[k](run);
  };
  if (!link_) return kernels();
  link_->receive(here);
  bool sent = false;
  {
    const Turns::Turn turn(link_->turns());
    kernels();
    sent = link_->send_at_once(here);
  }
  if (!sent) link_->send(here);
}

// Runs the backward likewise; returns the batch's loss. The norm of the whole gradient, by which a slot may be clipped,
// is known when the first stage has its own: then all stages take the optimizer's step.
BatchLoss CompiledModel::backward(const cpu::CompiledStage& stage, const cpu::Run& run, const StageLink::Run& here,
                                  Learning::Step& step, Gradients* gradients) {
  const auto kernels = [&] {
    for (std::size_t k = stage.plan.backward; k < stage.plan.kernels.size(); ++k) stage.plan.kernels[k](run);
    if (gradients != nullptr) *gradients = copied_gradients(stage.plan, run);
    return learning_.end(step, run);
  };
  if (!link_) return kernels();
  if (!pipeline_->is_last()) step.loss_elsewhere = link_->take_back(here);
  BatchLoss loss;
  bool given = false;
  {
    const Turns::Turn turn(link_->turns(), /*first=*/true);
    loss = kernels();
    given = link_->give_back_at_once(here, loss);
  }
  if (!given) link_->give_back(here);
  if (!step.squares.empty()) {
    step.factor = link_->agree_on_factor(here, *step.numbers.front().clip_norm);
    const Turns::Turn turn(link_->turns(), /*first=*/true);
    learning_.end_clipped(step, run);
  }
  return loss;
}

std::optional<SlotBounds> CompiledModel::bounds_of(int row) const {
  if (bounds_.size() == 0) return std::nullopt;
  double* const numbers = store_.bounds().data_ptr<double>() + static_cast<std::size_t>(row) * bounds_.size();
  return SlotBounds(bounds_, {numbers, bounds_.size()}, recipe_.compression->interval);
}

Gradients CompiledModel::copied_gradients(const cpu::CompiledGraph& plan, const cpu::Run& run) const {
  Gradients gradients;
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!training_.graph.weights[i].trained || !store_.owned(i)) continue;
    gradients.emplace_back(i, at::Tensor());
    const cpu::Tensor gradient = plan.gradient(i);
    if (!gradient.defined()) continue;
    at::Tensor& copy = gradients.back().second;
    copy = at::empty_like(store_.weight(i).narrow(0, 0, 1));
    std::memcpy(copy.data_ptr(), run.buffers[static_cast<std::size_t>(gradient.buffer)], copy.nbytes());
  }
  return gradients;
}

BatchLoss CompiledModel::step(const CompiledSlot& slot, const Samples& samples, std::span<const SlotStep> numbers,
                              Gradients* gradients) {
  const cpu::CompiledStage& stage = plan_for(gradients == nullptr ? use_ : GradientUse::kKept, samples.size());
  const simd::FlushDenormals flush;
  std::optional<Turns::Turn> place;
  enter_stage(slot.row, place);
  Borrowed workspace(*this);
  std::optional<SlotBounds> bounds = bounds_of(slot.row);
  Learning::Step step{stage.plan,
                      slot,
                      numbers,
                      static_cast<double>(samples.size()),
                      *(*workspace).learning,
                      bounds ? &*bounds : nullptr,
                      {},
                      squares_for(numbers, *workspace),
                      {}};
  learning_.begin(step);
  const auto take = [&](const cpu::Run& run, std::span<const cpu::WeightGradient> complete) {
    learning_.take(step, run, complete);
  };
  const cpu::Apply apply = std::cref(take);
  cpu::Run run = begin(stage.plan, *workspace, slot, samples);
  run.apply = &apply;
  std::optional<cpu::Coding> coding;
  if (bounds) {
    EncodedValues& encoded = (*workspace).encoded;
    encoded.begin(stage.plan.encoded.size());
    run.coding = &coding.emplace(stage.plan.encoded, encoded, *bounds, recipe_.compression->sigma);
  }
  const StageLink::Run here{stage, run.buffers, slot.row, (*workspace).message, step.squares};
  forward(stage, run, here);
  const BatchLoss loss = backward(stage, run, here, step, gradients);
  if (bounds) bounds->end();
  return loss;
}

std::vector<at::Tensor> CompiledModel::predict(const CompiledSlot& slot, const Samples& samples) {
  const cpu::CompiledStage& stage = plan_for(std::nullopt, samples.size());
  const simd::FlushDenormals flush;
  std::optional<Turns::Turn> place;
  enter_stage(slot.row, place);
  Borrowed workspace(*this);
  const cpu::Run run = begin(stage.plan, *workspace, slot, samples);
  forward(stage, run, {stage, run.buffers, slot.row, (*workspace).message, {}});
  std::vector<at::Tensor> outputs;
  for (const cpu::Tensor& output : stage.plan.outputs) outputs.push_back(view_of(output, run.buffers).clone());
  return outputs;
}

}  // namespace hfta::fusion
