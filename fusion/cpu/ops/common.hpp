#pragma once
/// Helpers that several ops' compilers share.

#include <memory>
#include <optional>

#include "fusion/cpu/kernels/gemm.hpp"
#include "fusion/cpu/kernels/pointwise.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/random/mask_part.hpp"

namespace hfta::fusion::cpu {

/// Emits C = A B (or C += A B).
template <typename T>
void emit_product(Builder& b, const Tensor& left, const Tensor& right, const Tensor& result, const Product& product) {
  const auto gemm = std::make_shared<const Gemm<T>>(product);
  const Tensor scratch = b.fresh({gemm->scratch(b.threads())});
  b.emit({left, right, result, scratch}, [=](const Run& run) {
    (*gemm)(run.at<T>(left), run.at<T>(right), run.at<T>(result), run.at<T>(scratch), run.team);
  });
}

/// The slot's dropout mask of the node, of n elements.
template <typename T>
void fill_mask(const Run& run, T* mask, std::int64_t n, double rate, std::uint32_t node) {
  const std::size_t before = run.random.elements_before(static_cast<std::size_t>(n));
  share(run.team, stretches_of(n, 1, static_cast<std::int64_t>(kDrawnAtOnce)),
        [&](std::int64_t first, std::int64_t count, int) {
          fill_dropout_mask_part(mask + first, before + static_cast<std::size_t>(first),
                                 static_cast<std::size_t>(count), rate, run.random.key, node, run.random.step);
        });
}

/// Whether all that happens to the node's first output, perhaps seen in another shape, is a relu: the node then
/// computes the relu's result, and the relu passes it on.
[[nodiscard]] bool fused_relu(LoweringContext& site);

/// What PyTorch gives as a copy. It is the same memory, as nothing is overwritten but buffers: by batch norms and
/// counters.
[[nodiscard]] Tensor copy_of(Builder& b, const Tensor& x);

/// If the plan encodes: emits a bit for each element of `y`, a relu's result that fills its buffer, set where it is not
/// 0, so that the relu's backward does not read y. Otherwise undefined.
[[nodiscard]] Tensor kept_signs(Builder& b, const Tensor& y);
/// dy, of y's layout, becomes 0 where y is 0.
void emit_mask(Builder& b, const Tensor& dy, const Tensor& signs);
/// Emits the kernel that tells the mean square of the input of a layer whose weight is Builder::bounded, where a run
/// asks for it. Before the layer's own.
void emit_input_square(Builder& b, const Tensor& weight, const Tensor& x);
/// Emits the kernel that sums up the output gradient [rows, O] of a layer whose weight is Builder::bounded, where a run
/// asks for it.
void emit_output_sums(Builder& b, const Tensor& weight, const Tensor& dy, std::int64_t rows);

/// The op's kernel, if it is an activation that has_costly_slope(). In ops/pointwise.cpp.
[[nodiscard]] std::optional<Unary> costly_activation(const LoweringContext& site);
/// Whether all that happens to such an activation's result is a product with a value of its shape: its own value is
/// then its input, and gated_product() computes both. In ops/gated.cpp.
[[nodiscard]] bool waits_for_product(const LoweringContext& site);
/// Compiles a product of two values along with the activation that waits for it; false if none does.
[[nodiscard]] bool gated_product(LoweringContext& site);

/// Compiles a square, a mean over the last dimension, a square root's reciprocal and the products that make of them
/// x / sqrt(mean x^2 + eps), perhaps times a weight (Zhang and Sennrich 2019, arXiv:1910.07467), as one norm; false if
/// the square at `site` is not the first of such calls. In ops/norm.cpp.
[[nodiscard]] bool fused_rms_norm(LoweringContext& site);

/// Compiles a sum that is a rotary position embedding, as fuse_rotations() found it; false if it is none. In
/// ops/rotary.cpp.
[[nodiscard]] bool fused_rotation(LoweringContext& site);

/// x [..., in] times weight [out, in] transposed, plus bias [out] (undefined: none): [..., out], without gaps. Sizes
/// have to fit. Kernels may write into the result. In ops/linear.cpp.
[[nodiscard]] Tensor linear_map(Builder& b, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// The parts one behind another along a dimension. In ops/select.cpp.
[[nodiscard]] Tensor joined(LoweringContext& site, const std::vector<Tensor>& parts, std::int64_t dim);

/// x + factor y, which broadcast. In ops/pointwise.cpp.
[[nodiscard]] Tensor added(LoweringContext& site, const Tensor& x, const Tensor& y, double factor);

}  // namespace hfta::fusion::cpu
