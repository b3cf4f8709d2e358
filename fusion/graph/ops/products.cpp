// Products, matrix algebra, convolutions, pools, losses.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

constexpr OpFamily kFamilies[] = {
    // Layers that are products.
    {Forms::kFunctional, "linear", {.kind = OpClass::kProduct, .init = InitRule::kFanIn}},
    {Forms::kFunctional, "bilinear", {.kind = OpClass::kProduct, .init = InitRule::kSecondSize}},
    {Forms::kFunctional,
     "_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution",
     {.kind = OpClass::kConvolution, .init = InitRule::kFanIn}},
    {Forms::kFunctional, "col2im im2col", {.kind = OpClass::kConvolution}},
    // Products of matrices and tensors.
    {Forms::kBoth, "addbmm addmm addmv addr baddbmm", {.kind = OpClass::kProduct}},
    {Forms::kFunctional,
     "_cdist_forward _euclidean_dist _trilinear _weight_norm _weight_norm_interface bmm cdist chain_matmul "
     "cosine_similarity cross dist dot einsum ger inner kron linalg_cross linalg_matmul linalg_multi_dot "
     "linalg_vecdot matmul mm mv outer pairwise_distance pdist tensordot vdot",
     {.kind = OpClass::kProduct}},
    {Forms::kFunctional,
     "cholesky cholesky_inverse cholesky_solve det inverse linalg_cholesky linalg_cholesky_ex linalg_det linalg_eigh "
     "_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lu "
     "linalg_lu_factor linalg_matrix_exp linalg_matrix_power linalg_pinv linalg_qr linalg_slogdet linalg_solve "
     "linalg_solve_ex linalg_solve_triangular logdet matrix_exp matrix_power pinverse slogdet triangular_solve "
     "vander linalg_vander svd linalg_svd _linalg_svd linalg_svdvals linalg_lstsq linalg_cond linalg_tensorsolve "
     "lu_solve linalg_lu_solve linalg_matrix_rank linalg_householder_product orgqr ormqr linalg_ldl_factor "
     "linalg_ldl_factor_ex linalg_ldl_solve lu_unpack",
     {.kind = OpClass::kAlgebra}},
    // Windows, and resampling.
    {Forms::kFunctional,
     "_adaptive_avg_pool2d _adaptive_avg_pool3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa "
     "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool1d "
     "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
     "affine_grid_generator avg_pool1d avg_pool2d avg_pool3d grid_sampler grid_sampler_2d grid_sampler_3d max_pool1d "
     "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices "
     "fractional_max_pool2d fractional_max_pool3d max_unpool2d max_unpool3d upsample_bicubic2d upsample_bilinear2d "
     "upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d",
     {.kind = OpClass::kPool}},
    // Losses within a model.
    {Forms::kFunctional,
     "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss "
     "kl_div l1_loss margin_ranking_loss mse_loss nll_loss2d_forward nll_loss_forward poisson_nll_loss "
     "smooth_l1_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward soft_margin_loss "
     "triplet_margin_loss",
     {.kind = OpClass::kLoss}},
    {Forms::kFunctional,
     "cross_entropy_loss nll_loss nll_loss2d nll_loss_nd",
     {.kind = OpClass::kLoss, .classes = "target", .arguments = "self target weight reduction ignore_index"}},
};

}  // namespace

std::span<const OpFamily> product_families() { return kFamilies; }

}  // namespace hfta::fusion
