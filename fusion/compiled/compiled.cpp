#include "fusion/compiled/compiled.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/error.hpp"
#include "fusion/collectives/gradient_mean.hpp"
#include "fusion/compiled/plans.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "fusion/compiled/views.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/optimizers/accumulate.hpp"
#include "fusion/optimizers/gradient_average.hpp"
#include "fusion/optimizers/shared_step.hpp"
#include "fusion/simd/denormals.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

// The samples of `all` one behind another.
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
  template <typename T>
  struct Typed {
    std::vector<SlotRow<T>> rows;
    std::vector<T> exchanged;  // with other ranks
  };
  cpu::Arena arena;
  EncodedValues encoded;
  std::tuple<Typed<float>, Typed<double>> typed;

  template <typename T>
  Typed<T>& of() {
    return std::get<Typed<T>>(typed);
  }
};

// A workspace for the time of one call.
class CompiledModel::Borrowed {
 public:
  explicit Borrowed(CompiledModel& model) : model_(model) {
    const std::lock_guard lock(model.mutex_);
    if (model.idle_.empty()) {
      mine_ = std::make_unique<Workspace>();
      model.idle_.reserve(model.idle_.size() + 16);
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
      bounds_(bounds_in(model.graph, recipe_)),
      store_(model.store),
      group_of_(model.group_of),
      phase_(model.phase),
      states_(info_of(recipe_.optimizer).states.size()),
      group_(model.group),
      library_(torch_library()) {
  check_precision(recipe_);
  const std::int64_t n = training_batch(training_.graph, recipe_);
  static_cast<void>(plan_for(true, n));
  if (phase_ == 0) static_cast<void>(plan_for(false, n));  // which evaluates for all of them
}

CompiledModel::~CompiledModel() = default;

const cpu::CompiledGraph& CompiledModel::plan_for(bool training, std::int64_t n) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const cpu::CompiledGraph>& plan = plans_[{training, n}];
  if (plan == nullptr) {
    plan = std::make_unique<const cpu::CompiledGraph>(
        training ? training_plan(training_, recipe_, n, library_.get(), threads_, recompute_, bounds_)
                 : cpu::compile_forward(with_owned(evaluation_.graph, owned_), evaluation_.index, recipe_.dtype, n,
                                        library_.get(), threads_));
  }
  return *plan;
}

std::int64_t CompiledModel::workspace_bytes() {
  const std::lock_guard lock(mutex_);
  std::size_t most = 0;
  for (const auto& [key, plan] : plans_) most = std::max(most, plan->arena_bytes);
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

// Adds the batch's gradients to the slot's sums; where it updates, they become the means of those.
template <typename T>
void CompiledModel::accumulate(const cpu::CompiledGraph& plan, std::span<std::byte* const> buffers, int row,
                               double weight, bool updates) const {
  double& total = store_.gradient_weight().data_ptr<double>()[row];
  total += weight;
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!plan.gradients[i].defined()) continue;
    const auto n = static_cast<std::size_t>(plan.weights[i].numel());
    auto* const gradient = reinterpret_cast<T*>(buffers[static_cast<std::size_t>(plan.gradients[i].buffer)]);
    T* const sum = store_.gradient(i).template data_ptr<T>() + static_cast<std::size_t>(row) * n;
    if (weight != 0) add_gradient(sum, gradient, weight, n);
    if (updates) take_mean(gradient, sum, total, n);
  }
  if (updates) total = 0;
}

template <typename T>
void CompiledModel::take_mean_over_ranks(const cpu::CompiledGraph& plan, Workspace& workspace, BatchLoss& loss) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  SlotMean<T> mean{loss.mean, loss.weight, {}};
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!plan.gradients[i].defined()) continue;
    mean.gradients.emplace_back(reinterpret_cast<T*>(buffers[static_cast<std::size_t>(plan.gradients[i].buffer)]),
                                static_cast<std::size_t>(plan.weights[i].numel()));
  }
  take_mean(*group_, std::span(&mean, 1), workspace.of<T>().exchanged);
  loss = {mean.loss, mean.weight};
}

template <typename T>
void CompiledModel::learn(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                          BatchLoss& loss, std::span<const SlotStep> numbers) const {
  const bool updates = numbers.front().updates;
  if (group_ != nullptr) take_mean_over_ranks<T>(plan, workspace, loss);
  if (recipe_.accumulates) accumulate<T>(plan, workspace.arena.bind(plan), slot.row, loss.weight, updates);
  if (updates) update<T>(plan, workspace, slot, numbers);
}

template <typename T>
void CompiledModel::update(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                           std::span<const SlotStep> numbers) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  std::vector<SlotRow<T>>& rows = workspace.of<T>().rows;
  rows.clear();
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!plan.gradients[i].defined()) continue;
    const std::int64_t n = plan.weights[i].numel();
    rows.push_back({reinterpret_cast<T*>(buffers[static_cast<std::size_t>(plan.weights[i].buffer)]),
                    reinterpret_cast<const T*>(buffers[static_cast<std::size_t>(plan.gradients[i].buffer)]),
                    {},
                    static_cast<std::size_t>(n),
                    static_cast<std::size_t>(group_of_[i])});
    for (std::size_t s = 0; s < states_; ++s) {
      rows.back().states[s] = store_.state(phase_, i, s).template data_ptr<T>() + slot.row * n;
    }
  }
  share_step(slot.team, recipe_.optimizer, std::span<const SlotRow<T>>(rows), numbers);
}

// Forward, and what else the plan has, for one slot; the plan's buffers, which last until the workspace is used again.
std::span<std::byte*> CompiledModel::run(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                                         const Samples& samples, SlotBounds* bounds) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  bind(plan, buffers, slot.row);
  const auto fill = [&](const SampleArray& from, const cpu::Tensor& to) {
    gather(from, samples, to, buffers[static_cast<std::size_t>(to.buffer)]);
  };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) fill(samples.array(i), plan.inputs[i]);
  cpu::Run all{buffers, slot.hypers, slot.random, workspace.arena.kept(), slot.team};
  std::optional<cpu::Coding> coding;
  if (bounds != nullptr) {
    workspace.encoded.begin(plan.encoded.size(), threads_);
    all.coding = &coding.emplace(plan.encoded, workspace.encoded, *bounds, recipe_.compression->sigma);
  }
  for (const cpu::Kernel& kernel : plan.kernels) kernel(all);
  return buffers;
}

std::optional<SlotBounds> CompiledModel::bounds_of(int row) const {
  if (bounds_.size() == 0) return std::nullopt;
  double* const numbers = store_.bounds().data_ptr<double>() + static_cast<std::size_t>(row) * bounds_.size();
  return SlotBounds(bounds_, {numbers, bounds_.size()}, recipe_.compression->interval);
}

// The error that each layer's gradient may have: by the state that averages gradients, else by this step's gradient.
void CompiledModel::find_wanted(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                                std::span<const SlotStep> numbers, const SlotBounds& bounds) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  std::vector<double> per_gradient;  // by group
  for (const SlotStep& one : numbers) {
    per_gradient.push_back(one.updates ? state_per_gradient(recipe_.optimizer, one) : 0);
  }
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!bounds_.has(i) || !plan.gradients[i].defined()) continue;
    const auto n = static_cast<std::size_t>(plan.weights[i].numel());
    const double per = per_gradient[static_cast<std::size_t>(group_of_[i])];
    const float* const state =
        per > 0 ? store_.state(phase_, i, 0).data_ptr<float>() + static_cast<std::size_t>(slot.row) * n
                : reinterpret_cast<const float*>(buffers[static_cast<std::size_t>(plan.gradients[i].buffer)]);
    bounds.set_wanted(i, recipe_.compression->sigma * gradient_scale({state, n}, per > 0 ? per : 1));
  }
}

Gradients CompiledModel::copied_gradients(const cpu::CompiledGraph& plan, std::span<std::byte* const> buffers) const {
  Gradients gradients;
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!training_.graph.weights[i].trained || !store_.owned(i)) continue;
    gradients.emplace_back(i, at::Tensor());
    if (!plan.gradients[i].defined()) continue;
    at::Tensor& copy = gradients.back().second;
    copy = at::empty_like(store_.weight(i).narrow(0, 0, 1));
    std::memcpy(copy.data_ptr(), buffers[static_cast<std::size_t>(plan.gradients[i].buffer)], copy.nbytes());
  }
  return gradients;
}

namespace {

// Of one element, of a floating-point type.
double number_of(const cpu::Tensor& output, std::span<std::byte* const> buffers) {
  const std::byte* const at = buffers[static_cast<std::size_t>(output.buffer)] + output.offset * size_of(output.dtype);
  return cpu::typed(output.dtype, [&]<typename T>() { return static_cast<double>(*reinterpret_cast<const T*>(at)); });
}

}  // namespace

BatchLoss CompiledModel::step(const CompiledSlot& slot, const Samples& samples, std::span<const SlotStep> numbers,
                              Gradients* gradients) {
  const cpu::CompiledGraph& plan = plan_for(true, samples.size());
  const simd::FlushDenormals flush;
  Borrowed workspace(*this);
  std::optional<SlotBounds> bounds = bounds_of(slot.row);
  const std::span<std::byte*> buffers = run(plan, *workspace, slot, samples, bounds ? &*bounds : nullptr);
  BatchLoss loss{number_of(plan.outputs[0], buffers), static_cast<double>(samples.size())};
  if (plan.outputs.size() > 1) loss.weight = number_of(plan.outputs[1], buffers);
  if (!slot.counts) loss.weight = 0;
  if (gradients != nullptr) *gradients = copied_gradients(plan, buffers);
  if (recipe_.dtype == DType::kFloat64) {
    learn<double>(plan, *workspace, slot, loss, numbers);
  } else {
    learn<float>(plan, *workspace, slot, loss, numbers);
  }
  if (bounds) {
    if (bounds->measures()) find_wanted(plan, *workspace, slot, numbers, *bounds);
    bounds->end();
  }
  return loss;
}

std::vector<at::Tensor> CompiledModel::predict(const CompiledSlot& slot, const Samples& samples) {
  const cpu::CompiledGraph& plan = plan_for(false, samples.size());
  const simd::FlushDenormals flush;
  Borrowed workspace(*this);
  const std::span<std::byte*> buffers = run(plan, *workspace, slot, samples, nullptr);
  std::vector<at::Tensor> outputs;
  for (const cpu::Tensor& output : plan.outputs) outputs.push_back(view_of(output, buffers).clone());
  return outputs;
}

}  // namespace hfta::fusion
