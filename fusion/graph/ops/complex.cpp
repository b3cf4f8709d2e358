// Complex numbers, and Fourier transforms.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

constexpr OpFamily kFamilies[] = {
    {Forms::kFunctional, "complex polar angle", {.kind = OpClass::kPointwise}},
    {Forms::kFunctional, "_conj_physical", {.kind = OpClass::kPointwise}},
    {Forms::kBoth, "conj_physical", {.kind = OpClass::kPointwise}},
    // Views, also where a conjugate or a sign is only noted down, for whatever reads the tensor.
    {Forms::kFunctional,
     "_conj _conj_copy _neg_view _neg_view_copy conj imag real view_as_complex view_as_complex_copy view_as_real "
     "view_as_real_copy",
     {.kind = OpClass::kView}},
    {Forms::kFunctional,
     "_fft_c2c _fft_c2r _fft_r2c fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn "
     "fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn istft stft",
     {.kind = OpClass::kTransform}},
    {Forms::kFunctional, "fft_fftshift fft_ifftshift", {.kind = OpClass::kRearrangement}},
    {Forms::kFunctional, "fft_fftfreq fft_rfftfreq", {.kind = OpClass::kFactory, .default_type = true}},
    {Forms::kFunctional, "linalg_eig _linalg_eigvals linalg_eigvals", {.kind = OpClass::kAlgebra}},
};

}  // namespace

std::span<const OpFamily> complex_families() { return kFamilies; }

}  // namespace hfta::fusion
