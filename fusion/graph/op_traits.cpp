#include "fusion/op_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace hfta::fusion {
namespace {

enum class Forms {
  kFunctional,  ///< "name" alone.
  kBoth,        ///< "name", and "name_", which overwrites its first argument.
  kInPlace,     ///< "name", which overwrites its first argument: Python's &= and its like.
};

struct ClassRow {
  OpClass kind;
  Forms forms;
  std::string_view names;
};

// Names as native_functions.yaml has them, without overload. A row is a class in forms that its names share.
constexpr std::array<ClassRow, 23> kRows = {{
    {OpClass::kPointwise, Forms::kInPlace, "__iand__ __ior__ __ixor__"},
    {OpClass::kPointwise, Forms::kBoth,
     "abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan "
     "atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu "
     "clamp "
     "clamp_max clamp_min clip copy copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 "
     "fill fix float_power floor floor_divide fmod frac gcd ge gelu greater greater_equal hardsigmoid hardswish "
     "hardtanh heaviside hypot i0 igamma igammac lcm ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p "
     "log2 logical_and logical_not logical_or logical_xor logit lt masked_fill mish mul multiply mvlgamma nan_to_num "
     "ne "
     "neg negative nextafter not_equal polygamma pow rad2deg reciprocal relu relu6 remainder round rsqrt selu sgn "
     "sigmoid sign silu sin sinc sinh sqrt square sub subtract tan tanh threshold tril triu true_divide trunc xlogy "
     "zero gt __and__ __or__ __xor__ __lshift__ __rshift__"},
    {OpClass::kPointwise, Forms::kFunctional,
     "_autocast_to_full_precision _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long "
     "_cast_Short _to_copy bucketize clone frexp contiguous fmax fmin glu hardshrink isclose isfinite isin isinf isnan "
     "isneginf isposinf isreal lift_fresh_copy log_sigmoid log_sigmoid_forward logaddexp logaddexp2 maximum minimum "
     "positive prelu _prelu_kernel rsub signbit softplus softshrink special_airy_ai special_bessel_j0 "
     "special_bessel_j1 "
     "special_digamma special_entr special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit "
     "special_expm1 special_gammainc special_gammaincc special_gammaln special_i0 special_i0e special_i1 special_i1e "
     "special_log1p special_log_ndtr special_logit special_multigammaln special_ndtr special_ndtri special_polygamma "
     "special_psi special_round special_sinc special_xlog1py special_xlogy special_zeta to type_as where searchsorted "
     "cpu"},
    {OpClass::kReduction, Forms::kBoth, "cumprod cumsum renorm"},
    {OpClass::kReduction, Forms::kFunctional,
     "_log_softmax _logcumsumexp _masked_softmax _safe_softmax _softmax all amax amin aminmax any argmax argmin "
     "argsort "
     "corrcoef count_nonzero cov cummax cummin cumulative_trapezoid diff frobenius_norm histc kthvalue "
     "linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax logcumsumexp logsumexp max mean median min mode "
     "msort nanmean nanmedian nanquantile nansum norm norm_except_dim nuclear_norm prod quantile softmax sort "
     "special_log_softmax special_logsumexp special_softmax std std_mean sum sum_to_size topk trace trapezoid trapz "
     "var "
     "var_mean"},
    {OpClass::kView, Forms::kBoth, "detach squeeze swapaxes swapdims t transpose unsqueeze"},
    {OpClass::kView, Forms::kFunctional,
     "_unsafe_view adjoint alias alias_copy atleast_1d atleast_2d atleast_3d broadcast_tensors "
     "broadcast_to chunk data detach_copy diagonal diagonal_copy dsplit expand expand_as expand_copy flatten hsplit "
     "lift lift_fresh linalg_diagonal mH mT matrix_H meshgrid moveaxis movedim narrow narrow_copy numpy_T permute "
     "permute_copy ravel reshape reshape_as resolve_conj resolve_neg select select_copy slice slice_copy split "
     "split_copy split_with_sizes split_with_sizes_copy squeeze_copy t_copy tensor_split transpose_copy unbind "
     "unbind_copy unflatten unfold unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy view "
     "view_as view_copy vsplit"},
    {OpClass::kRearrangement, Forms::kBoth,
     "fill_diagonal index_add index_copy index_fill index_put index_reduce masked_scatter put scatter scatter_add "
     "scatter_reduce"},
    {OpClass::kRearrangement, Forms::kFunctional,
     "_unsafe_index block_diag cartesian_prod cat channel_shuffle column_stack combinations concat concatenate "
     "constant_pad_nd diag diag_embed diagflat diagonal_scatter dstack flip fliplr flipud gather hstack index "
     "index_select masked_select native_channel_shuffle nonzero nonzero_numpy nonzero_static one_hot pad pad_sequence "
     "_pad_circular _pad_enum pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat "
     "repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll rot90 row_stack select_scatter "
     "slice_scatter stack take take_along_dim tile unique_consecutive unique_dim _unique2 vstack argwhere"},
    {OpClass::kProduct, Forms::kBoth, "addbmm addmm addmv addr baddbmm"},
    {OpClass::kProduct, Forms::kFunctional,
     "_cdist_forward _euclidean_dist _trilinear _weight_norm _weight_norm_interface bilinear bmm cdist chain_matmul "
     "cosine_similarity cross dist dot einsum ger inner kron linalg_cross linalg_matmul linalg_multi_dot linalg_vecdot "
     "linear matmul mm mv outer pairwise_distance pdist tensordot vdot"},
    {OpClass::kAlgebra, Forms::kFunctional,
     "cholesky cholesky_inverse cholesky_solve det inverse linalg_cholesky linalg_cholesky_ex linalg_det linalg_eigh "
     "_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lu "
     "linalg_lu_factor linalg_matrix_exp linalg_matrix_power linalg_pinv linalg_qr linalg_slogdet linalg_solve "
     "linalg_solve_ex linalg_solve_triangular logdet matrix_exp matrix_power pinverse slogdet triangular_solve vander "
     "linalg_vander svd linalg_svd _linalg_svd linalg_svdvals linalg_lstsq linalg_cond linalg_tensorsolve lu_solve "
     "linalg_lu_solve linalg_matrix_rank"},
    {OpClass::kConvolution, Forms::kFunctional,
     "_convolution col2im conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution "
     "im2col"},
    {OpClass::kPool, Forms::kFunctional,
     "_adaptive_avg_pool2d _adaptive_avg_pool3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa "
     "_upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
     "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d affine_grid_generator avg_pool1d avg_pool2d "
     "avg_pool3d grid_sampler grid_sampler_2d grid_sampler_3d max_pool1d max_pool1d_with_indices max_pool2d "
     "max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d upsample_bicubic2d "
     "upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
     "upsample_trilinear3d"},
    {OpClass::kNorm, Forms::kFunctional,
     "_native_batch_norm_legit_functional _native_batch_norm_legit_no_training "
     "_batch_norm_with_update_functional _batch_norm_no_update _fused_rms_norm batch_norm "
     "group_norm instance_norm layer_norm native_batch_norm native_group_norm native_layer_norm rms_norm"},
    {OpClass::kAttention, Forms::kFunctional,
     "_scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention"},
    {OpClass::kRecurrent, Forms::kFunctional,
     "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"},
    {OpClass::kLookup, Forms::kBoth, "embedding_renorm"},
    {OpClass::kLookup, Forms::kFunctional, "embedding embedding_bag _embedding_bag"},
    {OpClass::kLoss, Forms::kFunctional,
     "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss "
     "hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss nll_loss nll_loss2d "
     "nll_loss2d_forward "
     "nll_loss_forward nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss"},
    {OpClass::kRandom, Forms::kBoth,
     "alpha_dropout bernoulli cauchy dropout exponential feature_alpha_dropout feature_dropout geometric log_normal "
     "normal random rrelu uniform"},
    {OpClass::kRandom, Forms::kFunctional,
     "binomial multinomial native_dropout normal_functional poisson rand rand_like randint randint_like randn "
     "randn_like "
     "randperm rrelu_with_noise_functional"},
    {OpClass::kFactory, Forms::kFunctional,
     "arange bartlett_window blackman_window empty empty_like empty_permuted empty_strided eye full full_like "
     "hamming_window "
     "hann_window kaiser_window linspace logspace new_empty new_empty_strided new_full new_ones new_zeros ones "
     "ones_like range "
     "scalar_tensor tril_indices triu_indices zeros zeros_like"},
}};

const std::unordered_map<std::string, OpTraits>& table() {
  static const std::unordered_map<std::string, OpTraits> all = [] {
    std::unordered_map<std::string, OpTraits> map;
    for (const ClassRow& row : kRows) {
      std::istringstream words{std::string(row.names)};
      for (std::string name; words >> name;) {
        map.try_emplace(name, OpTraits{row.kind, row.forms == Forms::kInPlace});
        if (row.forms == Forms::kBoth) map.try_emplace(name + "_", OpTraits{row.kind, true});
      }
    }
    return map;
  }();
  return all;
}

struct Words {
  std::string space, name, overload;
};

// "aten::add.Tensor" -> "aten", "add", "Tensor".
Words words_of(const std::string& op) {
  const std::size_t colons = op.find("::");
  if (colons == std::string::npos) return {"", op, ""};
  const std::string rest = op.substr(colons + 2);
  const std::size_t dot = rest.find('.');
  return {op.substr(0, colons), rest.substr(0, dot), dot == std::string::npos ? "" : rest.substr(dot + 1)};
}

// Overloads that are called for their outputs, which are the caller's tensors.
constexpr std::array kWritingOverloads = {
    "L",          "OutScalar_Other", "OutScalar_Self", "OutTensor", "U",      "X",    "dim_max", "dim_min",
    "dim_values", "eigenvalues",     "eigvals",        "inverse",   "result", "sign", "values",  "values_stable"};

// Overloads that write into tensors of the caller's, take dimensions by name, or packed sequences, whose lengths
// nothing checks.
bool is_foreign_overload(const std::string& overload) {
  return overload == "out" || overload.starts_with("out_") || overload.ends_with("_out") ||
         overload.ends_with("output") || overload.ends_with("grad_input") ||
         std::find(kWritingOverloads.begin(), kWritingOverloads.end(), overload) != kWritingOverloads.end() ||
         overload.find("imname") != std::string::npos || overload.find("names") != std::string::npos ||
         overload == "data";
}

}  // namespace

std::optional<OpTraits> op_traits(const std::string& op) {
  const Words words = words_of(op);
  if (words.space != "aten" || is_foreign_overload(words.overload)) return std::nullopt;
  const auto found = table().find(words.name);
  return found == table().end() ? std::nullopt : std::optional(found->second);
}

std::string why_not_admitted(const std::string& op) {
  const Words words = words_of(op);
  if (words.space != "aten") {
    return fmt::format("found an op of the library '{}'; a model may use PyTorch's own ops, not those of extensions",
                       words.space);
  }
  return "this op is none of those that a model may use, which are functions of tensors alone (docs/models.md)";
}

}  // namespace hfta::fusion
