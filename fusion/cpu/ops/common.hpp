#pragma once
/// What several ops' compilers share.

#include <memory>

#include "fusion/cpu/kernels/gemm.hpp"
#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {

/// Emits C = A B (or C += A B).
template <typename T>
void emit_product(Builder& b, const Tensor& left, const Tensor& right, const Tensor& result, const Product& product) {
  const auto gemm = std::make_shared<const Gemm<T>>(product);
  const Tensor scratch = b.fresh({gemm->scratch()});
  b.emit({left, right, result, scratch},
         [=](const Run& run) { (*gemm)(run.at<T>(left), run.at<T>(right), run.at<T>(result), run.at<T>(scratch)); });
}

/// If all that happens to the node's first output is a relu, that node is fused with it: `relu` is true then, and the
/// value that is computed is the relu's. Otherwise the node's own.
[[nodiscard]] inline ValueId fused_relu(Site& site, bool& relu) {
  Builder& b = site.b;
  relu = false;
  const auto reader = b.only_reader(site.output());
  if (!reader) return site.output();
  const Node& node = b.graph().nodes[*reader];
  if (node.op != "aten::relu" && node.op != "aten::relu_") return site.output();
  relu = true;
  b.fuse(*reader);
  return node.outputs.at(0);
}

/// x + factor y, which broadcast. In ops/pointwise.cpp.
[[nodiscard]] Tensor added(Site& site, const Tensor& x, const Tensor& y, double factor);

}  // namespace hfta::fusion::cpu
