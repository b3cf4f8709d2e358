// Ops that compute element by element, and along dimensions.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

constexpr OpFamily kFamilies[] = {
    // Copies, of another type or layout.
    {Forms::kFunctional,
     "to type_as clone _to_copy contiguous lift_fresh_copy positive _autocast_to_full_precision",
     {.kind = OpClass::kPointwise, .elements = Elements::kMoved}},
    // Multivariate gammas: p is a number of dimensions.
    {Forms::kBoth, "mvlgamma", {.kind = OpClass::kPointwise, .whole = "p"}},
    {Forms::kFunctional, "special_multigammaln", {.kind = OpClass::kPointwise, .whole = "p"}},
    // Ops that compute element by element.
    {Forms::kInPlace, "__iand__ __ior__ __ixor__", {.kind = OpClass::kPointwise}},
    {Forms::kBoth,
     "abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh "
     "atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil "
     "celu clamp clamp_max clamp_min clip copy copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv "
     "exp exp2 expm1 fill fix float_power floor floor_divide fmod frac gcd ge gelu greater greater_equal "
     "hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac lcm ldexp le leaky_relu lerp less "
     "less_equal lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill "
     "mish mul multiply nan_to_num ne neg negative nextafter not_equal polygamma pow rad2deg reciprocal relu relu6 "
     "remainder round rsqrt selu sgn sigmoid sign silu sin sinc sinh sqrt square sub subtract tan tanh threshold "
     "tril triu true_divide trunc xlogy zero gt __and__ __or__ __xor__ __lshift__ __rshift__",
     {.kind = OpClass::kPointwise}},
    {Forms::kFunctional,
     "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long "
     "_cast_Short bucketize frexp fmax fmin glu hardshrink isclose isfinite isin isinf isnan isneginf isposinf "
     "isreal log_sigmoid log_sigmoid_forward logaddexp logaddexp2 maximum minimum prelu _prelu_kernel "
     "rsub signbit softplus softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_digamma "
     "special_entr special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 "
     "special_gammainc special_gammaincc special_gammaln special_i0 special_i0e special_i1 special_i1e "
     "special_log1p special_log_ndtr special_logit special_ndtr special_ndtri special_polygamma special_psi "
     "special_round special_sinc special_xlog1py special_xlogy special_zeta where searchsorted cpu",
     {.kind = OpClass::kPointwise}},
    // Ops that compute along dimensions.
    {Forms::kBoth, "cumprod cumsum renorm", {.kind = OpClass::kReduction}},
    {Forms::kFunctional,
     "_log_softmax _logcumsumexp _masked_softmax _safe_softmax _softmax all amax amin aminmax any argmax argmin "
     "argsort corrcoef count_nonzero cov cummax cummin cumulative_trapezoid diff frobenius_norm gradient histc "
     "kthvalue linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax logcumsumexp logsumexp max mean median "
     "min mode msort nanmean nanmedian nanquantile nansum norm norm_except_dim nuclear_norm prod quantile softmax "
     "sort segment_reduce special_log_softmax special_logsumexp special_softmax std std_mean sum sum_to_size topk "
     "trace trapezoid trapz var var_mean",
     {.kind = OpClass::kReduction}},
};

}  // namespace

std::span<const OpFamily> element_families() { return kFamilies; }

}  // namespace hfta::fusion
