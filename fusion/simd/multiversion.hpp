#pragma once
/// multiversion(loops): one binary serves every x86-64; loops run with the widest instructions that the machine has.

#include <cstddef>
#include <optional>
#include <type_traits>

namespace hfta::fusion::simd {

/// Levels of the x86-64 ABI that loops are compiled for. Elsewhere there is only kBaseline.
enum class InstructionSet {
  kBaseline,  ///< "x86-64": SSE2
  kV3,        ///< "x86-64-v3": AVX2 and FMA
  kV4,        ///< "x86-64-v4": AVX-512
};

/// "x86-64-v3"
[[nodiscard]] const char* name_of(InstructionSet level);
/// The widest that this CPU runs, or HFTA_INSTRUCTION_SET of the environment where that is narrower (for tests: a
/// machine can pretend to be an older one). Read once per process. Throws Error (kConfig) where the variable is no
/// name of a level.
[[nodiscard]] InstructionSet instruction_set();
/// The level of HFTA_INSTRUCTION_SET, for libraries that look at the CPU themselves; nothing where it is not set.
[[nodiscard]] std::optional<InstructionSet> instruction_set_limit();

/// The width of a level's vector registers, for kernels that are written with vectors (vector.hpp).
template <std::size_t kRegisterBytes>
struct Registers {
  static constexpr std::size_t kBytes = kRegisterBytes;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace detail {
template <std::size_t kBytes, typename Loops>
inline __attribute__((always_inline)) auto run_with(const Loops& loops) {
  if constexpr (std::is_invocable_v<const Loops&, Registers<kBytes>>) {
    return loops(Registers<kBytes>());
  } else {
    return loops();
  }
}
template <typename Loops>
[[gnu::target("arch=x86-64-v4"), gnu::flatten, gnu::noinline]] auto run_v4(const Loops& loops) {
  return run_with<64>(loops);
}
template <typename Loops>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] auto run_v3(const Loops& loops) {
  return run_with<32>(loops);
}
template <typename Loops>
[[gnu::flatten, gnu::noinline]] auto run_baseline(const Loops& loops) {
  return run_with<16>(loops);
}
}  // namespace detail

/// loops(), or loops(Registers): a lambda that calls one kernel. The kernel is compiled once per level, with all that
/// it calls inlined; a function that is not inlined would run as compiled for the baseline.
template <typename Loops>
auto multiversion(const Loops& loops) {
  static const InstructionSet level = instruction_set();
  switch (level) {
    case InstructionSet::kV4:
      return detail::run_v4(loops);
    case InstructionSet::kV3:
      return detail::run_v3(loops);
    case InstructionSet::kBaseline:
      break;
  }
  return detail::run_baseline(loops);
}
#else
template <typename Loops>
auto multiversion(const Loops& loops) {
  if constexpr (std::is_invocable_v<const Loops&, Registers<16>>) {
    return loops(Registers<16>());
  } else {
    return loops();
  }
}
#endif

}  // namespace hfta::fusion::simd
