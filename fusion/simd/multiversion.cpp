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
  for (const InstructionSet level : {InstructionSet::kBaseline, InstructionSet::kV3, InstructionSet::kV4}) {
    if (name == name_of(level)) return level;
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("HFTA_INSTRUCTION_SET: found '{}', wanted x86-64, x86-64-v3 or x86-64-v4", name));
}

}  // namespace

const char* name_of(InstructionSet level) {
  constexpr const char* kNames[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<int>(level)];
}

std::optional<InstructionSet> instruction_set_limit() {
  const char* limit = std::getenv("HFTA_INSTRUCTION_SET");
  return limit == nullptr || *limit == 0 ? std::nullopt : std::optional(named(limit));
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const InstructionSet own = of_this_cpu();
    return std::min(own, instruction_set_limit().value_or(own));
  }();
  return chosen;
}

}  // namespace hfta::fusion::simd
