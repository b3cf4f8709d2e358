#pragma once
/// What several ops' compilers share.

#include <memory>

#include "fusion/cpu/kernels/gemm.hpp"
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
  share(run.team, stretches_of(n, 1, static_cast<std::int64_t>(kDrawnAtOnce)),
        [&](std::int64_t first, std::int64_t count, int) {
          fill_dropout_mask_part(mask + first, static_cast<std::size_t>(first), static_cast<std::size_t>(count), rate,
                                 run.random.key, node, run.random.step);
        });
}

/// Whether all that happens to the node's first output, perhaps seen in another shape, is a relu: the node then
/// computes the relu's result, and the relu passes it on.
[[nodiscard]] bool fused_relu(LoweringContext& site);

/// x [..., in] times weight [out, in] transposed, plus bias [out] (undefined: none): [..., out], without gaps. Sizes
/// have to fit. In ops/linear.cpp.
[[nodiscard]] Tensor linear_map(Builder& b, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// The parts one behind another along a dimension. In ops/select.cpp.
[[nodiscard]] Tensor joined(LoweringContext& site, const std::vector<Tensor>& parts, std::int64_t dim);

/// x + factor y, which broadcast. In ops/pointwise.cpp.
[[nodiscard]] Tensor added(LoweringContext& site, const Tensor& x, const Tensor& y, double factor);

}  // namespace hfta::fusion::cpu
