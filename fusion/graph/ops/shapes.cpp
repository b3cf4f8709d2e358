// Ops that give elements other sizes or places, and those that make tensors from numbers alone.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

constexpr OpFamily kFamilies[] = {
    // Views.
    {Forms::kBoth, "detach squeeze transpose unsqueeze", {.kind = OpClass::kView, .elements = Elements::kMoved}},
    {Forms::kFunctional,
     "view reshape alias permute flatten view_as _unsafe_view",
     {.kind = OpClass::kView, .elements = Elements::kMoved}},
    {Forms::kFunctional, "expand expand_as broadcast_to", {.kind = OpClass::kView, .elements = Elements::kRepeated}},
    {Forms::kBoth, "swapaxes swapdims t", {.kind = OpClass::kView}},
    {Forms::kFunctional,
     "adjoint alias_copy atleast_1d atleast_2d atleast_3d broadcast_tensors chunk data detach_copy diagonal "
     "diagonal_copy dsplit expand_copy hsplit lift lift_fresh linalg_diagonal mH mT matrix_H meshgrid moveaxis "
     "movedim narrow narrow_copy numpy_T permute_copy ravel reshape_as resolve_conj resolve_neg select select_copy "
     "slice slice_copy split split_copy split_with_sizes split_with_sizes_copy squeeze_copy t_copy tensor_split "
     "transpose_copy unbind unbind_copy unflatten unfold unfold_copy unsafe_chunk unsafe_split "
     "unsafe_split_with_sizes unsqueeze_copy view_copy vsplit",
     {.kind = OpClass::kView}},
    // Elements put elsewhere.
    {Forms::kFunctional, "repeat tile", {.kind = OpClass::kRearrangement, .elements = Elements::kRepeated}},
    {Forms::kBoth,
     "fill_diagonal index_add index_copy index_fill index_put index_reduce masked_scatter put scatter scatter_add "
     "scatter_reduce",
     {.kind = OpClass::kRearrangement}},
    {Forms::kFunctional,
     "_unsafe_index block_diag cartesian_prod cat channel_shuffle column_stack combinations concat concatenate "
     "constant_pad_nd diag diag_embed diagflat diagonal_scatter dstack flip fliplr flipud gather hstack index "
     "index_select masked_select native_channel_shuffle nonzero nonzero_numpy one_hot pad "
     "pad_sequence _pad_circular _pad_enum pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d "
     "reflection_pad3d repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll rot90 "
     "row_stack select_scatter slice_scatter stack take take_along_dim unique_consecutive unique_dim _unique2 "
     "vstack argwhere",
     {.kind = OpClass::kRearrangement}},
    {Forms::kFunctional, "nonzero_static", {.kind = OpClass::kRearrangement, .whole = "fill_value"}},
    // Tensors of numbers and sizes alone.
    {Forms::kFunctional, "full", {.kind = OpClass::kFactory, .constant_of = "fill_value", .default_type = true}},
    {Forms::kFunctional, "full_like new_full", {.kind = OpClass::kFactory, .constant_of = "fill_value"}},
    {Forms::kFunctional, "ones", {.kind = OpClass::kFactory, .constant = 1.0, .default_type = true}},
    {Forms::kFunctional, "ones_like new_ones", {.kind = OpClass::kFactory, .constant = 1.0}},
    {Forms::kFunctional,
     "arange bartlett_window blackman_window empty empty_permuted empty_strided eye hamming_window hann_window "
     "kaiser_window linspace logspace range scalar_tensor zeros",
     {.kind = OpClass::kFactory, .default_type = true}},
    {Forms::kFunctional,
     "empty_like new_empty new_empty_strided new_zeros tril_indices triu_indices zeros_like",
     {.kind = OpClass::kFactory}},
};

}  // namespace

std::span<const OpFamily> shape_families() { return kFamilies; }

}  // namespace hfta::fusion
