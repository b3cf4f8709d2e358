#pragma once
/// Numbers that differ between the slots of one run of a graph, beside tensors: hyperparameters and counted draws.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusion/eager/slot_numbers.hpp"
#include "fusion/random/draws.hpp"

namespace hfta::fusion {

/// Source of a run's numbers: the host, or the device's memory when the work is done (fusion/capture).
class RunNumbers {
 public:
  virtual ~RunNumbers() = default;

  /// Graph::hypers[index] of every slot.
  [[nodiscard]] virtual SlotNumbers hyper(int index) const = 0;
  /// Graph::hypers of one slot, on the host: for ops that take their numbers from there. Empty where there are none.
  [[nodiscard]] virtual std::span<const double> hypers_of(std::size_t slot) const = 0;

  // New tensors of `sizes`, the leading one counting slots where the run has a slot dimension; `like`: float or double,
  // and the device. Each slot's part is what random/draws.hpp gives for its key and step and this node.
  [[nodiscard]] virtual at::Tensor dropout_masks(at::IntArrayRef sizes, const SlotNumbers& rates, std::uint32_t node,
                                                 const at::TensorOptions& like) const = 0;
  [[nodiscard]] virtual at::Tensor uniforms(at::IntArrayRef sizes, std::uint32_t node,
                                            const at::TensorOptions& like) const = 0;
  [[nodiscard]] virtual at::Tensor normals(at::IntArrayRef sizes, std::uint32_t node,
                                           const at::TensorOptions& like) const = 0;
};

/// Numbers that the host has; draws are made there and copied to the device.
class HostNumbers final : public RunNumbers {
 public:
  HostNumbers() = default;
  /// By slot; both must outlive it. `hypers`: Graph::hypers' values.
  HostNumbers(std::span<const SlotRandom> random, std::span<const std::vector<double>> hypers)
      : random_(random), hypers_(hypers) {}

  [[nodiscard]] SlotNumbers hyper(int index) const override;
  [[nodiscard]] std::span<const double> hypers_of(std::size_t slot) const override;
  [[nodiscard]] at::Tensor dropout_masks(at::IntArrayRef sizes, const SlotNumbers& rates, std::uint32_t node,
                                         const at::TensorOptions& like) const override;
  [[nodiscard]] at::Tensor uniforms(at::IntArrayRef sizes, std::uint32_t node,
                                    const at::TensorOptions& like) const override;
  [[nodiscard]] at::Tensor normals(at::IntArrayRef sizes, std::uint32_t node,
                                   const at::TensorOptions& like) const override;

 private:
  template <typename Fill>
  [[nodiscard]] at::Tensor filled(at::IntArrayRef sizes, const at::TensorOptions& like, Fill fill) const;

  std::span<const SlotRandom> random_;
  std::span<const std::vector<double>> hypers_;
};

}  // namespace hfta::fusion
