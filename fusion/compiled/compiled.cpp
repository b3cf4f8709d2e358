#include "fusion/compiled/compiled.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/error.hpp"
#include "fusion/collectives/gradient_mean.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "fusion/compiled/views.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/cpu/encode.hpp"
#include "fusion/optimizers/accumulate.hpp"
#include "fusion/optimizers/gradient_average.hpp"
#include "fusion/optimizers/shared_step.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/sharing.hpp"
#include "fusion/phases.hpp"
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

// What evaluation reads of slots' own weights is no constant, though its graph writes none of them.
Graph with_owned(Graph graph, const std::vector<bool>& owned) {
  for (std::size_t i = 0; i < graph.weights.size(); ++i)
    graph.weights[i].per_slot = graph.weights[i].per_slot || owned[i];
  return graph;
}

void add_ops(const cpu::CompiledGraph& plan, std::vector<std::string>& ops) {
  for (const std::vector<std::string>& part : plan.parts) {
    for (const std::string& op : part) {
      if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
    }
  }
}

// What is computed again beside encoded values decides which ones these are, and so bits: it is no way to run then.
cpu::CompiledGraph compressing_plan(const SpecializedGraph& training, const Recipe& recipe, std::int64_t n,
                                    const cpu::Library* library, int threads, const BoundLayout& bounds) {
  return cpu::compile_training(training.graph, training.index, recipe.dtype, n, library, threads, cpu::kBesideEncoded,
                               &bounds);
}

BoundLayout bounds_in(const Graph& graph, const Recipe& recipe) {
  return recipe.compression ? cpu::bounded_layers(graph)
                            : BoundLayout(std::vector<std::int64_t>(graph.weights.size(), 0));
}

void check_precision(const Recipe& recipe) {
  if (recipe.precision != Precision::kBfloat16) return;
  throw Error(ErrorKind::kConfig,
              "lowering: found compiled with precision bfloat16, wanted float32 or tf32: kernels are compiled for "
              "float32 and float64");
}

std::int64_t training_batch(const Graph& graph, const Recipe& recipe) {
  return graph.fixed_batch > 0 ? graph.fixed_batch : recipe.batch_size;
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
    const SpecializedGraph& reading = training ? training_ : evaluation_;
    const bool encodes = training && bounds_.size() > 0;
    plan = std::make_unique<const cpu::CompiledGraph>(
        encodes    ? compressing_plan(reading, recipe_, n, library_.get(), threads_, bounds_)
        : training ? cpu::compile_training(reading.graph, reading.index, recipe_.dtype, n, library_.get(), threads_,
                                           recompute_)
                   : cpu::compile_forward(with_owned(reading.graph, owned_), reading.index, recipe_.dtype, n,
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

namespace {

// What the phases of a recipe compile: training each, evaluation the first.
template <typename Train, typename Evaluate>
void for_each_phase(const Graph& graph, const Recipe& recipe, Train train, Evaluate evaluate) {
  check_precision(recipe);
  for (std::size_t p = 0; p < phase_count(recipe); ++p) {
    const Graph complete = with_complete_arguments(graph_of_phase(graph, recipe, p));
    const SpecializedGraph training = specialized(complete, Purpose::kTraining);
    train(training);
    if (p > 0) continue;
    SpecializedGraph evaluation = specialized(complete, Purpose::kEvaluation);
    evaluation.graph = with_owned(std::move(evaluation.graph), owned_weights(training));
    evaluate(evaluation);
  }
}

std::int64_t encoded_elements(const cpu::CompiledGraph& plan) {
  std::int64_t elements = 0;
  for (const cpu::EncodedValue& value : plan.encoded) elements += value.elements;
  return elements;
}

// Slots' bounds are not known before they train. Measured ratios: docs/memory.md.
std::int64_t expected_encoded_bytes(const cpu::CompiledGraph& plan) {
  constexpr std::int64_t kExpectedRatio = 4;
  return EncodedValues::held_bytes_for(encoded_elements(plan) * size_of(DType::kFloat32) / kExpectedRatio,
                                       plan.threads);
}

}  // namespace

Compilation compilation_of(const Graph& graph, const Recipe& recipe) {
  Compilation found;
  try {
    const std::unique_ptr<const cpu::Library> library = torch_library();
    const std::int64_t n = training_batch(graph, recipe);
    for_each_phase(
        graph, recipe,
        [&](const SpecializedGraph& one) {
          const BoundLayout bounds = bounds_in(one.graph, recipe);
          const cpu::CompiledGraph plan =
              bounds.size() > 0 ? compressing_plan(one, recipe, n, library.get(), 1, bounds)
                                : cpu::compile_training(one.graph, one.index, recipe.dtype, n, library.get());
          add_ops(plan, found.by_torch);
          found.encoded += std::count_if(plan.encoded.begin(), plan.encoded.end(),
                                         [](const cpu::EncodedValue& value) { return value.elements > 0; });
          found.encoded_bytes += encoded_elements(plan) * size_of(DType::kFloat32);
        },
        [&](const SpecializedGraph& one) {
          static_cast<void>(cpu::compile_forward(one.graph, one.index, recipe.dtype, n, library.get()));
        });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    found.why_not = error.what();
  }
  return found;
}

std::vector<std::int64_t> arena_bytes(const Graph& graph, const Recipe& recipe, std::int64_t evaluation_batch,
                                      int threads, std::span<const int> recompute) {
  const std::unique_ptr<const cpu::Library> library = torch_library();
  const std::int64_t n = training_batch(graph, recipe);
  std::vector<std::int64_t> first, all(recompute.size(), 0);  // of the first phase; of all phases
  std::int64_t evaluating = 0, encoded = 0;
  const auto arenas_of = [&](const SpecializedGraph& one) {
    const BoundLayout bounds = bounds_in(one.graph, recipe);
    if (bounds.size() == 0)
      return cpu::training_arenas(one.graph, one.index, recipe.dtype, n, library.get(), threads, recompute);
    const cpu::CompiledGraph plan = compressing_plan(one, recipe, n, library.get(), threads, bounds);
    encoded = expected_encoded_bytes(plan);
    return std::vector<std::size_t>(recompute.size(), plan.arena_bytes);
  };
  for_each_phase(
      graph, recipe,
      [&](const SpecializedGraph& one) {
        const std::vector<std::size_t> bytes = arenas_of(one);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<std::int64_t>(bytes[i]);
        if (first.empty()) first = all;
      },
      [&](const SpecializedGraph& one) {
        for (const std::int64_t samples : {n, evaluation_batch}) {
          if (samples == 0) continue;
          const cpu::CompiledGraph plan =
              cpu::compile_forward(one.graph, one.index, recipe.dtype, samples, library.get(), threads);
          evaluating = std::max(evaluating, static_cast<std::int64_t>(plan.arena_bytes));
        }
      });
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += std::max<std::int64_t>(0, evaluating - first[i]) + encoded;
  return all;
}

}  // namespace hfta::fusion
