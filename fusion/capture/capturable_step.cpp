#include "fusion/capture/capturable_step.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>

#include "fusion/eager/accumulation.hpp"
#include "fusion/eager/layout.hpp"
#include "fusion/eager/loss.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

at::ScalarType type_of(const Recipe& recipe) { return scalar_type(recipe.dtype); }

// One number of StepParams tells where all parts begin.
bool in_step(const Batch& batch) {
  const Samples& first = batch.parts.front();
  return std::all_of(batch.parts.begin(), batch.parts.end(),
                     [&](const Samples& part) { return part.begin == first.begin && part.size() == first.size(); });
}

// Whether all samples are tensors on the model's device.
bool on_device(const Batch& batch, const CapturableModel& model) {
  return std::all_of(batch.parts.begin(), batch.parts.end(), [&](const Samples& part) {
    for (std::size_t i = 0; i < model.graph.inputs.size(); ++i) {
      const at::Tensor& all = part.array(i).stored();
      if (!all.defined() || all.device().type() != model.device.type()) return false;
    }
    return true;
  });
}

std::string why_not(const Batch& batch, const CapturableModel& model, bool keep) {
  if (keep) return "gradients are kept";
  if (!on_device(batch, model)) return "samples are elsewhere";
  if (!in_step(batch)) return "slots are at different places of their epochs";
  const bool shared =
      std::any_of(batch.parts.begin(), batch.parts.end(), [](const Samples& s) { return s.shared != nullptr; });
  return shared ? "chunks share layers" : "";
}

// What a captured run reads from StepParams; `hypers` on the host are for ops that cannot.
class DeviceNumbers final : public RunNumbers {
 public:
  DeviceNumbers(const StepKernels& kernels, std::span<const std::vector<double>> hypers)
      : kernels_(kernels), hypers_(hypers) {}

  [[nodiscard]] SlotNumbers hyper(int index) const override { return SlotNumbers(kernels_.numbers().hyper(index)); }
  [[nodiscard]] std::span<const double> hypers_of(std::size_t slot) const override { return hypers_[slot]; }
  [[nodiscard]] at::Tensor dropout_masks(at::IntArrayRef sizes, const SlotNumbers& rates, std::uint32_t node,
                                         const at::TensorOptions& like) const override {
    at::Tensor out = at::empty(sizes, like);
    kernels_.fill_masks(out, rates, node);
    return out;
  }
  [[nodiscard]] at::Tensor uniforms(at::IntArrayRef sizes, std::uint32_t node,
                                    const at::TensorOptions& like) const override {
    at::Tensor out = at::empty(sizes, like);
    kernels_.fill_uniforms(out, node);
    return out;
  }
  [[nodiscard]] at::Tensor normals(at::IntArrayRef sizes, std::uint32_t node,
                                   const at::TensorOptions& like) const override {
    at::Tensor out = at::empty(sizes, like);
    kernels_.fill_normals(out, node);
    return out;
  }

 private:
  const StepKernels& kernels_;
  std::span<const std::vector<double>> hypers_;
};

}  // namespace

CapturableStep::CapturableStep(const CapturableModel& model, Chunk& chunk, const PooledStream& lane)
    : model_(model),
      chunk_(chunk),
      numbers_(model.recipe.optimizer, type_of(model.recipe), model.slots,
               1 + static_cast<int>(model.recipe.groups.size()), model.hypers, model.device),
      kernels_(numbers_, lane.graphs(), model.recipe.clips),
      recorder_(lane.graphs(), model.why_not) {}

at::Tensor CapturableStep::fresh_losses() {
  if (!losses_.defined()) {
    losses_ = at::empty({2, model_.slots}, at::TensorOptions().dtype(at::kDouble).device(model_.device));
  }
  return losses_.zero_();
}

void CapturableStep::run(const Batch& batch, std::span<const SlotRun> slots, const at::Tensor& losses, bool keep) {
  hypers_.resize(slots.size());
  for (std::size_t b = 0; b < slots.size(); ++b) hypers_[b].assign(slots[b].hypers.begin(), slots[b].hypers.end());
  model_.shared_runs +=
      std::count_if(batch.parts.begin(), batch.parts.end(), [](const Samples& part) { return part.shared == nullptr; });
  numbers_.set(slots, batch.parts.front().begin);
  bring_orders(batch);
  recorder_.run(key_for(batch, losses), why_not(batch, model_, keep), [&] { step(batch, losses, keep); });
}

// An epoch's order is copied once, to where graphs look for it.
void CapturableStep::bring_orders(const Batch& batch) {
  for (std::size_t p = 0; p < batch.parts.size(); ++p) {
    const at::Tensor& order = batch.parts[p].order;
    if (!order.defined()) continue;
    Order& known = orders_[p];
    if (known.copied.is_same(order)) continue;
    if (!known.here.defined() || known.here.sizes() != order.sizes()) known.here = at::empty_like(order);
    known.here.copy_(order, /*non_blocking=*/true);
    known.copied = order;
  }
}

StepKey CapturableStep::key_for(const Batch& batch, const at::Tensor& losses) const {
  StepKey key{{losses}, batch.part_of, batch.parts.front().size()};
  for (std::size_t p = 0; p < batch.parts.size(); ++p) {
    const Samples& part = batch.parts[p];
    for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) key.memory.push_back(part.array(i).stored());
    key.memory.push_back(part.order.defined() ? orders_.at(p).here : at::Tensor());
  }
  return key;
}

void CapturableStep::step(const Batch& batch, const at::Tensor& losses, bool keep) {
  const at::AutoGradMode record(true);
  chunk_.drop_gradients();
  const std::vector<at::Tensor> objective = forward(batch);
  backward(objective.front());
  std::vector<ParameterSlots> reached = chunk_.take_gradients(keep);
  const std::int64_t samples = batch.parts.front().size();
  at::Tensor sums = losses;
  add_loss(sums, objective, samples);
  if (!model_.recipe.accumulates) return update(reached);
  // One graph serves all batches: slots whose step is not due divide, too, but neither step nor begin anew.
  const at::Tensor& total = chunk_.gradient_weight;
  accumulate(reached, total, objective, samples);
  take_means(reached, total);
  update(reached);
  begin_anew(reached, total, numbers_.updated().ne(0));
}

void CapturableStep::update(const std::vector<ParameterSlots>& reached) const {
  kernels_.step(reached);
  if (model_.clips_weights) clamp_weights(reached, numbers_.weight_limits());
}

std::function<at::Tensor(const SampleArray&)> CapturableStep::picker(const Batch& batch, std::size_t part) const {
  const Samples& samples = batch.parts[part];
  if (!in_step(batch) || !on_device(batch, model_)) {
    return [&samples](const SampleArray& all) { return samples.of(all); };
  }
  const at::Tensor order = samples.order.defined() ? orders_.at(part).here : at::Tensor();
  return [this, order, n = samples.size()](const SampleArray& all) {
    return all.taken(kernels_.rows(all.stored(), n, order));
  };
}

std::vector<at::Tensor> CapturableStep::forward(const Batch& batch) {
  std::vector<std::shared_ptr<const ValueEnv>> flows;
  for (std::size_t p = 0; p < batch.parts.size(); ++p) {
    const Samples& part = batch.parts[p];
    flows.push_back(part.shared);
    if (part.shared != nullptr) continue;
    const std::vector<at::Tensor> inputs = inputs_of(part, model_.graph, picker(batch, p));
    flows.back() = std::make_shared<const ValueEnv>(model_.program.share(inputs, chunk_.leaves));
  }
  std::vector<const ValueEnv*> of_slot;
  of_slot.reserve(static_cast<std::size_t>(model_.slots));
  for (int b = 0; b < model_.slots; ++b) of_slot.push_back(flows[batch.part_of_slot(b)].get());
  const DeviceNumbers numbers(kernels_, hypers_);
  const RunContext context{model_.slots == 1 ? 0 : model_.slots, numbers, model_.device};
  return model_.program.run(of_slot, chunk_.leaves, context);
}

}  // namespace hfta::fusion
