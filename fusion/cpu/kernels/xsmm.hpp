#pragma once
/// The instruction set that LIBXSMM makes its kernels for.

#include <string>

namespace hfta::fusion::cpu {

/// Holds LIBXSMM to HFTA_INSTRUCTION_SET, as the loops of simd/ are held; LIBXSMM_TARGET, its own variable, goes first.
/// To be called before a kernel is asked for; all calls but the process's first do nothing. Any thread. Throws Error
/// (kConfig) where the variable is no name of a level.
void hold_xsmm();

/// LIBXSMM's name of what it makes kernels for: "hsw" is AVX2, "skx", "clx" and "cpx" are AVX-512.
[[nodiscard]] std::string xsmm_target();

}  // namespace hfta::fusion::cpu
