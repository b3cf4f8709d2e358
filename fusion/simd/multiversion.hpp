#pragma once
/// multiversion(loops): one binary serves every x86-64; loops run with the widest instructions that the machine has.

namespace hfta::fusion::simd {

/// Levels of the x86-64 ABI that loops are compiled for. Elsewhere there is only kBaseline.
enum class InstructionSet {
  kBaseline,  ///< "x86-64": SSE2
  kV3,        ///< "x86-64-v3": AVX2 and FMA
  kV4,        ///< "x86-64-v4": AVX-512
};

/// The widest that this CPU runs, or HFTA_INSTRUCTION_SET of the environment where that is narrower (for tests: a
/// machine can pretend to be an older one). Read once per process. Throws Error (kConfig) where the variable is no
/// name of a level.
[[nodiscard]] InstructionSet instruction_set();

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace detail {
template <typename Loops>
[[gnu::target("arch=x86-64-v4"), gnu::flatten, gnu::noinline]] auto run_v4(const Loops& loops) {
  return loops();
}
template <typename Loops>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] auto run_v3(const Loops& loops) {
  return loops();
}
template <typename Loops>
[[gnu::flatten, gnu::noinline]] auto run_baseline(const Loops& loops) {
  return loops();
}
}  // namespace detail

/// loops(): a lambda that calls one kernel. The kernel is compiled once per level, with all that it calls inlined; a
/// function that is not inlined would run as compiled for the baseline.
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
  return loops();
}
#endif

}  // namespace hfta::fusion::simd
