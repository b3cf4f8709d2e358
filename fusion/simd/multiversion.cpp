#include "fusion/simd/multiversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace hfta::fusion::simd {
namespace {

InstructionSet of_this_cpu() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4") != 0) return InstructionSet::kV4;
  if (__builtin_cpu_supports("x86-64-v3") != 0) return InstructionSet::kV3;
#endif
  return InstructionSet::kBaseline;
}

InstructionSet named(std::string_view name) {
  if (name == "x86-64") return InstructionSet::kBaseline;
  if (name == "x86-64-v3") return InstructionSet::kV3;
  if (name == "x86-64-v4") return InstructionSet::kV4;
  throw Error(ErrorKind::kConfig,
              fmt::format("HFTA_INSTRUCTION_SET: found '{}', wanted x86-64, x86-64-v3 or x86-64-v4", name));
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const char* limit = std::getenv("HFTA_INSTRUCTION_SET");
    return limit == nullptr || *limit == 0 ? of_this_cpu() : std::min(of_this_cpu(), named(limit));
  }();
  return chosen;
}

}  // namespace hfta::fusion::simd
