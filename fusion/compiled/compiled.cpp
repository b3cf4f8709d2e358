#include "fusion/compiled/compiled.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
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

template <typename T>
T* elements(const cpu::WeightGradient& gradient, const cpu::Run& run) {
  return run.at<T>(gradient.tensor);
}

std::size_t count_of(const cpu::WeightGradient& gradient) { return static_cast<std::size_t>(gradient.tensor.numel()); }

// Of one element, of a floating-point type.
double number_of(const cpu::Tensor& output, const cpu::Run& run) {
  return cpu::typed(output.dtype, [&]<typename T>() { return static_cast<double>(*run.at<T>(output)); });
}

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
    std::vector<T> exchanged;              // with other ranks
    std::optional<MeanInPieces<T>> means;  // over ranks, of gradients that are applied
  };
  cpu::Arena arena;
  EncodedValues encoded;
  std::vector<GradientScale> scales;                         // by weight
  std::vector<std::span<const cpu::WeightGradient>> pieces;  // whose means over ranks are under way
  std::tuple<Typed<float>, Typed<double>> typed;

  template <typename T>
  Typed<T>& of() {
    return std::get<Typed<T>>(typed);
  }
  void exchange_with(Collectives& group, DType dtype) {
    cpu::typed(dtype, [&]<typename T>() { of<T>().means.emplace(group); });
  }
};

// One slot's step, as those see it who apply gradients.
struct CompiledModel::Step {
  const cpu::CompiledGraph& plan;
  const CompiledSlot& slot;
  std::span<const SlotStep> numbers;  // by group
  double samples;
  Workspace& workspace;
  SlotBounds* bounds;  // null: nothing is encoded
};

// A workspace for the time of one call.
class CompiledModel::Borrowed {
 public:
  explicit Borrowed(CompiledModel& model) : model_(model) {
    const std::lock_guard lock(model.mutex_);
    if (model.idle_.empty()) {
      mine_ = std::make_unique<Workspace>();
      if (model.group_ != nullptr) mine_->exchange_with(*model.group_, model.recipe_.dtype);
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
      train_(gradient_use(recipe_) == GradientUse::kApplied ? Purpose::kTrainApplying : Purpose::kTrain),
      bounds_(bounds_in(model.graph, recipe_)),
      store_(model.store),
      group_of_(model.group_of),
      phase_(model.phase),
      states_(info_of(recipe_.optimizer).states.size()),
      group_(model.group),
      library_(torch_library()) {
  check_precision(recipe_);
  const std::int64_t n = training_batch(training_.graph, recipe_);
  static_cast<void>(plan_for(train_, n));
  if (phase_ == 0) static_cast<void>(plan_for(Purpose::kPredict, n));  // which evaluates for all of them
}

CompiledModel::~CompiledModel() = default;

cpu::CompiledGraph CompiledModel::compiled(Purpose purpose, std::int64_t n) const {
  if (purpose == Purpose::kPredict) {
    return cpu::compile_forward(with_owned(evaluation_.graph, owned_), evaluation_.index, recipe_.dtype, n,
                                library_.get(), threads_);
  }
  return training_plan(training_, recipe_, n, {.library = library_.get(), .threads = threads_, .recompute = recompute_},
                       bounds_, purpose == Purpose::kTrainApplying ? GradientUse::kApplied : GradientUse::kKept);
}

const cpu::CompiledGraph& CompiledModel::plan_for(Purpose purpose, std::int64_t n) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const cpu::CompiledGraph>& plan = plans_[{purpose, n}];
  if (plan == nullptr) plan = std::make_unique<const cpu::CompiledGraph>(compiled(purpose, n));
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

// Of this rank's samples, when the forward has run.
BatchLoss CompiledModel::loss_of(const Step& step, const cpu::Run& run) {
  const std::vector<cpu::Tensor>& outputs = step.plan.outputs;
  BatchLoss loss{number_of(outputs[0], run), step.samples};
  if (outputs.size() > 1) loss.weight = number_of(outputs[1], run);
  if (!step.slot.counts) loss.weight = 0;
  return loss;
}

// Adds the batch's gradients to the slot's sums; where it updates, they become the means of those.
template <typename T>
void CompiledModel::accumulate(const Step& step, const cpu::Run& run, double weight) const {
  const bool updates = step.numbers.front().updates;
  const auto row = static_cast<std::size_t>(step.slot.row);
  double& total = store_.gradient_weight().data_ptr<double>()[row];
  total += weight;
  for (const cpu::WeightGradient& one : step.plan.gradients) {
    const std::size_t n = count_of(one);
    T* const gradient = elements<T>(one, run);
    T* const sum = store_.gradient(one.weight).template data_ptr<T>() + row * n;
    if (weight != 0) add_gradient(sum, gradient, weight, n);
    if (updates) take_mean(gradient, sum, total, n);
  }
  if (updates) total = 0;
}

template <typename T>
void CompiledModel::take_mean_over_ranks(const Step& step, const cpu::Run& run, BatchLoss& loss) const {
  SlotMean<T> mean{loss.mean, loss.weight, {}};
  for (const cpu::WeightGradient& one : step.plan.gradients) {
    mean.gradients.emplace_back(elements<T>(one, run), count_of(one));
  }
  take_mean(*group_, std::span(&mean, 1), step.workspace.of<T>().exchanged);
  loss = {mean.loss, mean.weight};
}

// With gradients that are all there.
void CompiledModel::learn(const Step& step, const cpu::Run& run, BatchLoss& loss) const {
  cpu::typed(recipe_.dtype, [&]<typename T>() {
    if (group_ != nullptr) take_mean_over_ranks<T>(step, run, loss);
    if (recipe_.accumulates) accumulate<T>(step, run, loss.weight);
  });
  apply(step, run, step.plan.gradients);
}

void CompiledModel::apply(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const {
  if (step.numbers.front().updates) {
    cpu::typed(recipe_.dtype, [&]<typename T>() { update<T>(step, run, gradients, {}); });
  }
  if (step.bounds != nullptr && step.bounds->measures()) find_wanted(step, run, gradients);
}

// Gradients that are complete travel to the other ranks, the first ones behind the loss of this rank's samples; those
// that have become means are applied.
template <typename T>
void CompiledModel::exchange(const Step& step, const cpu::Run& run,
                             std::span<const cpu::WeightGradient> gradients) const {
  MeanInPieces<T>& means = *step.workspace.of<T>().means;
  std::vector<std::span<const cpu::WeightGradient>>& pieces = step.workspace.pieces;
  if (pieces.empty()) {
    const BatchLoss own = loss_of(step, run);
    means.begin({own.mean, own.weight});
  }
  pieces.push_back(gradients);
  std::vector<std::span<const T>> values;
  for (const cpu::WeightGradient& one : gradients) values.emplace_back(elements<T>(one, run), count_of(one));
  means.add(values);
  take_means<T>(step, run, false);
}

template <typename T>
void CompiledModel::take_means(const Step& step, const cpu::Run& run, bool all) const {
  step.workspace.of<T>().means->take(all, [&](std::size_t piece, std::span<const T> mean) {
    update<T>(step, run, step.workspace.pieces[piece], mean);
  });
}

// The last means are applied; the loss becomes that of all ranks.
void CompiledModel::end_exchange(const Step& step, const cpu::Run& run, BatchLoss& loss) const {
  cpu::typed(recipe_.dtype, [&]<typename T>() {
    take_means<T>(step, run, true);
    const PartOfBatch whole = step.workspace.of<T>().means->end();
    loss = {whole.loss, whole.weight};
  });
}

template <typename T>
void CompiledModel::update(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients,
                           std::span<const T> mean) const {
  std::vector<SlotRow<T>>& rows = step.workspace.of<T>().rows;
  rows.clear();
  const T* next = mean.data();
  for (const cpu::WeightGradient& one : gradients) {
    const cpu::Tensor& weight = step.plan.weights[one.weight];
    rows.push_back({run.at<T>(weight) + one.first,
                    mean.empty() ? elements<T>(one, run) : next,
                    {},
                    count_of(one),
                    static_cast<std::size_t>(group_of_[one.weight])});
    next += mean.empty() ? 0 : count_of(one);
    for (std::size_t s = 0; s < states_; ++s) {
      rows.back().states[s] =
          store_.state(phase_, one.weight, s).template data_ptr<T>() + step.slot.row * weight.numel() + one.first;
    }
  }
  share_step(step.slot.team, recipe_.optimizer, std::span<const SlotRow<T>>(rows), step.numbers);
}

// The error that each layer's gradient may have: by the state that averages gradients, else by this step's gradient.
void CompiledModel::find_wanted(const Step& step, const cpu::Run& run,
                                std::span<const cpu::WeightGradient> gradients) const {
  step.workspace.scales.resize(step.plan.weights.size());
  for (const cpu::WeightGradient& one : gradients) {
    if (!bounds_.has(one.weight)) continue;
    const SlotStep& numbers = step.numbers[static_cast<std::size_t>(group_of_[one.weight])];
    const double per = numbers.updates ? state_per_gradient(recipe_.optimizer, numbers) : 0;
    const std::int64_t n = one.tensor.numel(), all = step.plan.weights[one.weight].numel();
    const float* const state =
        per > 0 ? store_.state(phase_, one.weight, 0).data_ptr<float>() + step.slot.row * all + one.first
                : elements<float>(one, run);
    GradientScale& scale = step.workspace.scales[one.weight];
    if (one.first == 0) scale = {};
    scale.add({state, static_cast<std::size_t>(n)});
    if (one.first + n < all) continue;
    step.bounds->set_wanted(one.weight, recipe_.compression->sigma * scale.value(per > 0 ? per : 1));
  }
}

// Forward, and what else the plan has, for one slot. What it leaves in its buffers lasts until the workspace is used
// again.
cpu::Run CompiledModel::run(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                            const Samples& samples, SlotBounds* bounds, const cpu::Apply* apply) const {
  const std::span<std::byte*> buffers = workspace.arena.bind(plan);
  bind(plan, buffers, slot.row);
  const auto fill = [&](const SampleArray& from, const cpu::Tensor& to) {
    gather(from, samples, to, buffers[static_cast<std::size_t>(to.buffer)]);
  };
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) fill(samples.array(i), plan.inputs[i]);
  cpu::Run all{buffers, slot.hypers, slot.random, workspace.arena.kept(), slot.team};
  all.apply = apply;
  std::optional<cpu::Coding> coding;
  if (bounds != nullptr) {
    workspace.encoded.begin(plan.encoded.size(), threads_);
    all.coding = &coding.emplace(plan.encoded, workspace.encoded, *bounds, recipe_.compression->sigma);
  }
  for (const cpu::Kernel& kernel : plan.kernels) kernel(all);
  all.coding = nullptr;
  return all;
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
  const cpu::CompiledGraph& plan = plan_for(gradients == nullptr ? train_ : Purpose::kTrain, samples.size());
  const simd::FlushDenormals flush;
  Borrowed workspace(*this);
  std::optional<SlotBounds> bounds = bounds_of(slot.row);
  const Step step{plan, slot, numbers, static_cast<double>(samples.size()), *workspace, bounds ? &*bounds : nullptr};
  step.workspace.pieces.clear();
  const auto applied = [&](const cpu::Run& run, std::span<const cpu::WeightGradient> complete) {
    if (group_ == nullptr) return apply(step, run, complete);
    cpu::typed(recipe_.dtype, [&]<typename T>() { exchange<T>(step, run, complete); });
  };
  const cpu::Apply hand_over = std::cref(applied);
  const cpu::Run run = this->run(plan, *workspace, slot, samples, step.bounds, &hand_over);
  BatchLoss loss = loss_of(step, run);
  if (gradients != nullptr) *gradients = copied_gradients(plan, run);
  if (!plan.applies) {
    learn(step, run, loss);
  } else if (group_ != nullptr) {
    end_exchange(step, run, loss);
  }
  if (bounds) bounds->end();
  return loss;
}

std::vector<at::Tensor> CompiledModel::predict(const CompiledSlot& slot, const Samples& samples) {
  const cpu::CompiledGraph& plan = plan_for(Purpose::kPredict, samples.size());
  const simd::FlushDenormals flush;
  Borrowed workspace(*this);
  const cpu::Run run = this->run(plan, *workspace, slot, samples, nullptr, nullptr);
  std::vector<at::Tensor> outputs;
  for (const cpu::Tensor& output : plan.outputs) outputs.push_back(view_of(output, run.buffers).clone());
  return outputs;
}

}  // namespace hfta::fusion
