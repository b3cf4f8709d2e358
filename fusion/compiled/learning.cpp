#include "fusion/compiled/learning.hpp"

#include <algorithm>

#include "fusion/codec/bounds.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/optimizers/accumulate.hpp"
#include "fusion/optimizers/gradient_average.hpp"
#include "fusion/optimizers/shared_step.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
T* elements(const cpu::WeightGradient& gradient, const cpu::Run& run) {
  return run.at<T>(gradient.tensor);
}

std::size_t count_of(const cpu::WeightGradient& gradient) { return static_cast<std::size_t>(gradient.tensor.numel()); }

template <typename T>
std::vector<std::span<const T>> values_of(std::span<const cpu::WeightGradient> gradients, const cpu::Run& run) {
  std::vector<std::span<const T>> values;
  for (const cpu::WeightGradient& one : gradients) values.emplace_back(elements<T>(one, run), count_of(one));
  return values;
}

// The value of an output of one element, of a floating-point type.
double number_of(const cpu::Tensor& output, const cpu::Run& run) {
  return cpu::typed(output.dtype, [&]<typename T>() { return static_cast<double>(*run.at<T>(output)); });
}

// The loss over this rank's samples, when the forward has run.
BatchLoss loss_of(const Learning::Step& step, const cpu::Run& run) {
  if (step.loss_elsewhere) return *step.loss_elsewhere;
  const std::vector<cpu::Tensor>& outputs = step.plan.outputs;
  BatchLoss loss{number_of(outputs[0], run), step.samples};
  if (outputs.size() > 1) loss.weight = number_of(outputs[1], run);
  if (!step.slot.counts) loss.weight = 0;
  return loss;
}

}  // namespace

Learning::Learning(const ExecutorModel& model, const Recipe& recipe, const BoundLayout& bounds)
    : recipe_(recipe),
      bounds_(bounds),
      store_(model.store),
      group_of_(model.group_of),
      phase_(model.phase),
      states_(info_of(recipe.optimizer).states.size()),
      group_(model.group) {}

// Adds the batch's gradients to the slot's sums; where it updates, they become the means of those.
template <typename T>
void Learning::accumulate(const Step& step, const cpu::Run& run, double weight) const {
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
void Learning::find_squares(const Step& step, const cpu::Run& run) const {
  for (const cpu::WeightGradient& one : step.plan.gradients) {
    step.squares[one.weight] = squares_of(std::span<const T>(elements<T>(one, run), count_of(one)));
  }
}

// Gradients that are all there become the means over ranks. The loss is that of all ranks.
template <typename T>
BatchLoss Learning::take_mean_over_ranks(const Step& step, const cpu::Run& run) const {
  MeanInPieces<T>& means = *step.memory.of<T>().means;
  means.begin(loss_of(step, run));
  means.add(values_of<T>(step.plan.gradients, run));
  means.take(true, [&](std::size_t, std::span<const T> mean) {
    const T* next = mean.data();
    for (const cpu::WeightGradient& one : step.plan.gradients) {
      std::copy_n(next, count_of(one), elements<T>(one, run));
      next += count_of(one);
    }
  });
  return means.end();
}

// Gradients that are complete travel to the other ranks, the first ones behind the loss of this rank's samples; those
// that have become means are applied.
template <typename T>
void Learning::exchange(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const {
  MeanInPieces<T>& means = *step.memory.of<T>().means;
  std::vector<std::span<const cpu::WeightGradient>>& pieces = step.memory.pieces_;
  if (pieces.empty()) means.begin(loss_of(step, run));
  pieces.push_back(gradients);
  means.add(values_of<T>(gradients, run));
  take_means<T>(step, run, false);
}

template <typename T>
void Learning::take_means(const Step& step, const cpu::Run& run, bool all) const {
  step.memory.of<T>().means->take(
      all, [&](std::size_t piece, std::span<const T> mean) { update<T>(step, run, step.memory.pieces_[piece], mean); });
}

// The last means are applied. The loss is that of all ranks.
template <typename T>
BatchLoss Learning::end_exchange(const Step& step, const cpu::Run& run) const {
  take_means<T>(step, run, true);
  return step.memory.of<T>().means->end();
}

template <typename T>
void Learning::update(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients,
                      std::span<const T> mean) const {
  std::vector<SlotRow<T>>& rows = step.memory.of<T>().rows;
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
  share_step(step.slot.team, recipe_.optimizer, std::span<const SlotRow<T>>(rows), step.numbers, step.factor);
}

// Sets the error that each layer's gradient may have: by the state that averages gradients, else by this gradient.
void Learning::find_wanted(const Step& step, const cpu::Run& run,
                           std::span<const cpu::WeightGradient> gradients) const {
  for (const cpu::WeightGradient& one : gradients) {
    if (!bounds_.has(one.weight)) continue;
    const double per = step.memory.per_gradient_[static_cast<std::size_t>(group_of_[one.weight])];
    const std::int64_t n = one.tensor.numel(), all = step.plan.weights[one.weight].numel();
    const float* const state =
        per > 0 ? store_.state(phase_, one.weight, 0).data_ptr<float>() + step.slot.row * all + one.first
                : elements<float>(one, run);
    GradientScale& scale = step.memory.scales_[one.weight];
    if (one.first == 0) scale = {};
    scale.add({state, static_cast<std::size_t>(n)});
    if (one.first + n < all) continue;
    step.bounds->set_wanted(one.weight, recipe_.compression->sigma * scale.value(per > 0 ? per : 1));
  }
}

void Learning::apply(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const {
  if (step.numbers.front().updates) {
    cpu::typed(recipe_.dtype, [&]<typename T>() { update<T>(step, run, gradients, {}); });
  }
  if (step.bounds != nullptr && step.bounds->measures()) find_wanted(step, run, gradients);
}

std::unique_ptr<Learning::Memory> Learning::make_memory() const {
  auto memory = std::make_unique<Memory>();
  if (group_ != nullptr) {
    cpu::typed(recipe_.dtype, [&]<typename T>() { memory->of<T>().means.emplace(*group_); });
  }
  return memory;
}

void Learning::begin(const Step& step) const {
  Memory& memory = step.memory;
  memory.pieces_.clear();
  if (step.bounds == nullptr || !step.bounds->measures()) return;
  memory.scales_.resize(step.plan.weights.size());
  memory.per_gradient_.clear();
  for (const SlotStep& one : step.numbers) {
    memory.per_gradient_.push_back(one.updates ? state_per_gradient(recipe_.optimizer, one) : 0);
  }
}

void Learning::take(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const {
  if (group_ == nullptr) return apply(step, run, gradients);
  cpu::typed(recipe_.dtype, [&]<typename T>() { exchange<T>(step, run, gradients); });
}

BatchLoss Learning::end(const Step& step, const cpu::Run& run) const {
  return cpu::typed(recipe_.dtype, [&]<typename T>() {
    const bool applied = step.plan.applies;
    const BatchLoss loss = group_ == nullptr ? loss_of(step, run)
                           : applied         ? end_exchange<T>(step, run)
                                             : take_mean_over_ranks<T>(step, run);
    if (recipe_.accumulates) accumulate<T>(step, run, loss.weight);
    if (!step.squares.empty()) {
      find_squares<T>(step, run);
    } else if (!applied) {
      apply(step, run, step.plan.gradients);
    }
    return loss;
  });
}

void Learning::end_clipped(const Step& step, const cpu::Run& run) const { apply(step, run, step.plan.gradients); }

}  // namespace hfta::fusion
