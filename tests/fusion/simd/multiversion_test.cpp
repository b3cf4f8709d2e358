// Loops run with the instructions that the environment asks for. instruction_sets.txt runs this program under each.
#include "fusion/simd/multiversion.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

namespace hfta::fusion::simd {

TEST_CASE("no wider instructions are used than HFTA_INSTRUCTION_SET names") {
  const char* text = std::getenv("HFTA_INSTRUCTION_SET");
  const std::string limit = text == nullptr ? "" : text;
  if (limit == "x86-64") CHECK(instruction_set() == InstructionSet::kBaseline);
  if (limit == "x86-64-v3") CHECK(instruction_set() <= InstructionSet::kV3);
  CHECK(multiversion([] { return 42; }) == 42);
}

}  // namespace hfta::fusion::simd
