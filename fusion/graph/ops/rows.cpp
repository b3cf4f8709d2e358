#include <sstream>
#include <string_view>
#include <unordered_map>

#include "fusion/op_rows.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion {
namespace {

struct RowsFamily {
  Rows rows;
  std::string_view names;  ///< Names without overload; forms in place are meant, too.
};

constexpr RowsFamily kFamilies[] = {
    {Rows::kElements,
     "to clone _to_copy contiguous detach alias lift_fresh_copy positive abs absolute acos acosh add addcdiv addcmul "
     "arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and bitwise_not "
     "bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide elu eq erf "
     "erfc erfinv exp exp2 expm1 float_power floor floor_divide fmax fmin fmod frac ge gelu greater greater_equal gt "
     "hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite isinf isnan le leaky_relu lerp less "
     "less_equal "
     "log log10 log1p log2 log_sigmoid logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt "
     "masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative not_equal pow rad2deg reciprocal relu "
     "relu6 remainder round rsqrt rsub selu sgn sigmoid sign silu sin sinc sinh softplus softshrink special_erf "
     "special_expit special_log1p sqrt square sub subtract tan tanh threshold true_divide trunc where xlogy __and__ "
     "__or__ __xor__ dropout alpha_dropout feature_dropout feature_alpha_dropout"},
    {Rows::kAlong,
     "_log_softmax _safe_softmax _softmax all amax amin any argmax argmin argsort cat chunk concat concatenate "
     "count_nonzero cummax cummin cumprod cumsum diff flip gather glu index_select linalg_vector_norm log_softmax "
     "logcumsumexp logsumexp max mean median min nansum narrow norm prod repeat_interleave roll select slice softmax "
     "sort split split_with_sizes squeeze stack std std_mean sum take_along_dim tensor_split topk unbind unsafe_chunk "
     "unsafe_split unsafe_split_with_sizes var var_mean"},
    {Rows::kReshaped, "view reshape flatten unflatten unsqueeze view_as reshape_as _unsafe_view"},
    {Rows::kExpanded, "expand expand_as broadcast_to repeat tile"},
    {Rows::kPermuted, "permute transpose swapaxes swapdims t mT adjoint"},
    {Rows::kFilled, "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full"},
    {Rows::kCounted, "arange"},
    {Rows::kIndexed, "index _unsafe_index"},
    {Rows::kMatrices, "matmul mm bmm addmm baddbmm linalg_matmul"},
    {Rows::kLinear, "linear"},
    {Rows::kConvolved, "conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d"},
    {Rows::kAttention, "scaled_dot_product_attention"},
    {Rows::kInner1,
     "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d upsample_linear1d upsample_nearest1d"},
    {Rows::kInner2,
     "_adaptive_avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d max_pool2d max_pool2d_with_indices "
     "upsample_bicubic2d upsample_bilinear2d upsample_nearest2d tril triu"},
    {Rows::kInner3,
     "_adaptive_avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d pixel_shuffle pixel_unshuffle "
     "upsample_nearest3d upsample_trilinear3d"},
    {Rows::kPadded,
     "pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
     "replication_pad3d"},
    {Rows::kLayerNorm, "layer_norm native_layer_norm rms_norm"},
    {Rows::kChannels, "batch_norm _batch_norm_no_update _native_batch_norm_legit_no_training"},
    {Rows::kGroups, "group_norm"},
    {Rows::kLooked, "embedding"},
    {Rows::kRecurrent, "lstm gru rnn_relu rnn_tanh"},
};

std::unordered_map<std::string, Rows> table() {
  std::unordered_map<std::string, Rows> by_name;
  for (const RowsFamily& family : kFamilies) {
    std::istringstream names{std::string(family.names)};
    for (std::string name; names >> name;) by_name.try_emplace(name, family.rows);
  }
  return by_name;
}

}  // namespace

Rows rows_of(const std::string& op) {
  static const std::unordered_map<std::string, Rows> all = table();
  const auto found = all.find(std::string(base_name(op)));
  return found == all.end() ? Rows::kUnknown : found->second;
}

std::string ops_with_rows() {
  std::string all;
  for (const RowsFamily& family : kFamilies) all += std::string(family.names) + " ";
  return all;
}

}  // namespace hfta::fusion
