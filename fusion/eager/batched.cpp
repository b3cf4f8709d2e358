#include "fusion/eager/batched.hpp"

#include <ATen/ATen.h>
#include <ATen/functorch/BatchedFallback.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>

#include "fusion/eager/layout.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

namespace functorch = at::functorch;

// A level of functorch's stack: an exception inside must not leave it there.
class VmapLevel {
 public:
  explicit VmapLevel(int slots)
      : level_(functorch::initAndPushDynamicLayer(functorch::TransformType::Vmap, slots,
                                                  functorch::RandomnessType::Error)) {}
  ~VmapLevel() { functorch::popDynamicLayerAndDeleteMetadata(); }
  VmapLevel(const VmapLevel&) = delete;
  VmapLevel& operator=(const VmapLevel&) = delete;
  [[nodiscard]] std::int64_t number() const { return level_; }

 private:
  std::int64_t level_;
};

// [c, ...] of what came out of a level. Nothing that was made under no_grad becomes a view made under no_grad: torch
// refuses to write into such a view where gradients are recorded, and the model may write into what it made.
at::Tensor unwrapped(const at::Tensor& t, std::int64_t level, int slots) {
  const auto* batched = functorch::maybeGetBatchedImpl(t);
  if (batched == nullptr || batched->level() != level) return with_slots(t, slots);
  const at::Tensor& value = batched->value();
  if (batched->bdim() == 0) return value;
  const c10::AutoGradMode records(c10::GradMode::is_enabled() || !value.requires_grad());
  return value.movedim(batched->bdim(), 0);
}

}  // namespace

BatchedOp::BatchedOp(const Node& node, const at::Device& device, bool by_slot)
    : op_(node, device), written_(makes_view(node) ? written_by(node) : std::vector<ValueId>()), by_slot_(by_slot) {}

ValueEnv BatchedOp::batched(std::span<const c10::IValue> values, const std::vector<bool>& slotwise, int slots) const {
  // functorch's own loop over slots tells standard error of itself at every op; ours does the same in silence.
  functorch::setVmapFallbackEnabled(false);
  const VmapLevel level(slots);
  const auto wrap = [&](ValueId id, const at::Tensor& t) {
    return slotwise[static_cast<std::size_t>(id)] ? functorch::makeBatched(t, 0, level.number()) : t;
  };
  ValueEnv outputs = op_.call(values, {}, wrap);
  for (c10::IValue& output : outputs) {
    if (output.isTensor() && output.toTensor().defined()) {
      output = unwrapped(output.toTensor(), level.number(), slots);
    }
  }
  return outputs;
}

ValueEnv BatchedOp::slot_by_slot(std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
                                 const RunContext& context) const {
  std::vector<ValueEnv> by_slot;
  for (int b = 0; b < context.slots; ++b) {
    const auto row = [&](ValueId id, const at::Tensor& t) {
      return slotwise[static_cast<std::size_t>(id)] ? t.select(0, b) : t;
    };
    by_slot.push_back(op_.call(values, context.numbers.hypers_of(static_cast<std::size_t>(b)), row));
  }
  ValueEnv outputs;
  for (std::size_t o = 0; o < by_slot.front().size(); ++o) {
    if (o < written_.size()) {  // in place: the slots' rows are written already
      outputs.push_back(values[static_cast<std::size_t>(written_[o])]);
      continue;
    }
    std::vector<at::Tensor> rows;
    rows.reserve(by_slot.size());
    for (ValueEnv& flow : by_slot) rows.push_back(flow[o].toTensor());
    outputs.emplace_back(rows.front().defined() ? at::stack(rows) : at::Tensor());
  }
  return outputs;
}

ValueEnv BatchedOp::call(std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
                         const RunContext& context) const {
  if (!by_slot_) {
    try {
      return batched(values, slotwise, context.slots);
    } catch (const c10::Error& error) {
      if (fault_of(error) != TorchFault::kCall) throw;  // want of memory, or a capture given up, is not for good
      by_slot_ = true;                                  // if the op itself is at fault, the loop says so in its words
    }
  }
  return slot_by_slot(values, slotwise, context);
}

}  // namespace hfta::fusion
