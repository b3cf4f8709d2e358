#pragma once
/// Which of ATen's ops a model may use, and what they are. Without torch.
///
/// Ops are admitted by what they are: functions of their tensors alone, their views, and the forms that overwrite their
/// first argument. What reads or writes files, takes another tensor's storage, prints, talks to other processes, or
/// belongs to a library of its own is in no class, and so is whatever a later LibTorch adds.

#include <optional>
#include <string>

namespace hfta::fusion {

enum class OpClass {
  kPointwise,      ///< Element by element: mul, relu, where; also copies and changes of dtype.
  kReduction,      ///< Along dimensions: sum, softmax, cumsum, sort.
  kView,           ///< The same memory with other sizes: reshape, slice.
  kRearrangement,  ///< Elements put elsewhere: cat, pad, gather, scatter, index.
  kProduct,        ///< Of matrices and tensors: linear, einsum, cdist.
  kAlgebra,        ///< Of matrices: inverse, qr, solve.
  kConvolution,    ///< And its transposes, im2col.
  kPool,           ///< And resampling: max_pool2d, upsample_bilinear2d, grid_sampler.
  kNorm,           ///< batch_norm, layer_norm.
  kAttention,      ///< scaled_dot_product_attention.
  kRecurrent,      ///< Layers and cells: lstm, gru_cell.
  kLookup,         ///< embedding, embedding_bag.
  kLoss,           ///< Losses within a model.
  kRandom,         ///< dropout, rand, bernoulli.
  kFactory,        ///< Tensors of numbers and sizes alone: zeros, arange.
};

struct OpTraits {
  OpClass kind = OpClass::kPointwise;
  bool in_place = false;  ///< Overwrites its first argument: "aten::relu_", "aten::add_.Tensor".
};

/// Of "aten::conv2d" or "aten::add_.Tensor", schema name and overload; nullopt if a model may not use the op.
[[nodiscard]] std::optional<OpTraits> op_traits(const std::string& op);

/// Why op_traits() has nothing, in words for the user.
[[nodiscard]] std::string why_not_admitted(const std::string& op);

}  // namespace hfta::fusion
