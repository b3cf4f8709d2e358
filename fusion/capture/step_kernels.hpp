#pragma once
/// Kernels that read a chunk's StepParams when they run: on a GPU those of fusion/cuda, on a CPU the loops of
/// fusion/optimizers and fusion/random over the same memory, with the same results.

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>

#include "fusion/capture/step_params.hpp"
#include "fusion/eager/optimizer.hpp"
#include "fusion/eager/slot_numbers.hpp"
#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// Whether the device has kernels in this build.
[[nodiscard]] bool has_step_kernels(const at::Device& device);

/// A chunk's numbers, and how kernels that read them are started. Asynchronous, on the current stream.
class StepKernels {
 public:
  /// `lane`: null where nothing is ever captured. Both must outlive it. `clips`: Recipe::clips.
  StepKernels(const StepParams& numbers, StepGraphRecorder* lane, bool clips)
      : numbers_(numbers), lane_(lane), clips_(clips) {}

  [[nodiscard]] const StepParams& numbers() const { return numbers_; }

  /// out: [slots, ...] float or double (without [slots] where there is one), filled as fill_dropout_mask,
  /// fill_uniform and fill_normal do for each slot's key and step.
  void fill_masks(const at::Tensor& out, const SlotNumbers& rates, std::uint32_t node) const;
  void fill_uniforms(const at::Tensor& out, std::uint32_t node) const;
  void fill_normals(const at::Tensor& out, std::uint32_t node) const;
  /// `n` rows of `all`, [N, ...] in one piece: those at order[begin .. begin + n), or at begin .. begin + n where
  /// `order` is undefined.
  [[nodiscard]] at::Tensor rows(const at::Tensor& all, std::int64_t n, const at::Tensor& order) const;
  /// One optimizer step of every slot that updates, clipping included where slots may clip; as step().
  void step(std::span<const ParameterSlots> parameters) const;

 private:
  void launch(const std::function<void()>& kernel) const;
  template <typename OnGpu, typename OnCpu>
  void fill(const at::Tensor& out, std::uint32_t node, OnGpu on_gpu, OnCpu on_cpu) const;

  const StepParams& numbers_;
  StepGraphRecorder* lane_;
  bool clips_;
};

}  // namespace hfta::fusion
