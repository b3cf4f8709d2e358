#include "fusion/cpu/kernels/xsmm.hpp"

#include <libxsmm.h>

#include <algorithm>
#include <cstdlib>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

// The narrowest that it makes kernels for is SSE3's, and no x86-64 processor of the last fifteen years lacks SSE4.
int widest_for(simd::InstructionSet level) {
  switch (level) {
    case simd::InstructionSet::kV4:
      return LIBXSMM_X86_AVX512_CORE;
    case simd::InstructionSet::kV3:
      return LIBXSMM_X86_AVX2;
    case simd::InstructionSet::kBaseline:
      break;
  }
  return LIBXSMM_X86_SSE4;
}

}  // namespace

void hold_xsmm() {
  static const bool held = [] {
    const auto limit = simd::instruction_set_limit();
    if (!limit || std::getenv("LIBXSMM_TARGET") != nullptr) return false;
    libxsmm_set_target_archid(std::min(libxsmm_get_target_archid(), widest_for(*limit)));
    return true;
  }();
  static_cast<void>(held);
}

std::string xsmm_target() {
  hold_xsmm();
  return libxsmm_get_target_arch();
}

}  // namespace hfta::fusion::cpu
