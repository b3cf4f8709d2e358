#pragma once
/// Ops without a rule of their own, c slots wide.

#include <atomic>
#include <vector>

#include "fusion/eager/batching_rule.hpp"
#include "fusion/eager/boxed.hpp"

namespace hfta::fusion {

/// A node that runs through LibTorch's own batching (functorch), or, if functorch cannot batch it or must not, slot by
/// slot.
class BatchedOp {
 public:
  /// `by_slot`: never batched, as for literals that differ between slots.
  BatchedOp(const Node& node, const at::Device& device, bool by_slot);
  BatchedOp(const BatchedOp& other) : op_(other.op_), written_(other.written_), by_slot_(other.by_slot_.load()) {}
  BatchedOp& operator=(const BatchedOp&) = delete;

  /// Outputs with a slot dimension. Throws c10::Error if the op itself refuses its arguments.
  [[nodiscard]] ValueEnv call(std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
                              const RunContext& context) const;
  /// "batched" or "per_slot"; known for sure after the first call.
  [[nodiscard]] const char* way() const { return by_slot_ ? "per_slot" : "batched"; }

 private:
  [[nodiscard]] ValueEnv batched(std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
                                 int slots) const;
  [[nodiscard]] ValueEnv slot_by_slot(std::span<const c10::IValue> values, const std::vector<bool>& slotwise,
                                      const RunContext& context) const;

  BoxedOp op_;
  std::vector<ValueId> written_;  ///< The values that an in-place op returns.
  mutable std::atomic<bool>
      by_slot_;  ///< Constant from the first call on, on every thread: it depends on the op alone.
};

}  // namespace hfta::fusion
