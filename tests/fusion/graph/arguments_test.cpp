#include "fusion/graph/arguments.hpp"

#include <catch2/catch.hpp>

namespace hfta::fusion {
namespace {

const Node kCall{
    "aten::sum.dim_IntList", {ValueId{3}, std::vector<std::int64_t>{1}, true}, {kNoValue}, "head", "m.py:3"};

TEST_CASE("arguments of a call are read by position and kind") {
  CHECK(argument_at(kCall, 2) == Arg(true));
  CHECK(argument_as<ValueId>(kCall, 0) == 3);
  CHECK(*argument_if<bool>(kCall, 2));
  CHECK(argument_if<std::int64_t>(kCall, 2) == nullptr);
  CHECK(argument_if<bool>(kCall, 3) == nullptr);
  CHECK(output_at(kCall, 0) == kNoValue);
  CHECK(first_output(kCall) == kNoValue);
  CHECK(first_output(Node{}) == kNoValue);
}

TEST_CASE("what a call lacks, or has otherwise, is an error with its place") {
  CHECK_THROWS_WITH((void)argument_at(kCall, 3),
                    "m.py:3: head (aten::sum.dim_IntList): found 3 arguments, wanted "
                    "argument 3 (they count from 0)");
  CHECK_THROWS_WITH((void)output_at(kCall, 1),
                    "m.py:3: head (aten::sum.dim_IntList): found 1 outputs, wanted output 1 "
                    "(they count from 0)");
  try {
    (void)argument_as<std::int64_t>(kCall, 1);
    FAIL("found an integer in a list of them");
  } catch (const ArgumentError& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    CHECK(error.text() == "argument 1: found a list of integers, wanted an integer");
    CHECK(error.what() == "m.py:3: head (aten::sum.dim_IntList): " + error.text());
  }
}

TEST_CASE("each kind of argument has words of its own") {
  CHECK(kind_of(Arg()) == "None");
  CHECK(kind_of(ValueId{1}) == "a value");
  CHECK(kind_of(std::int64_t{1}) == "an integer");
  CHECK(kind_of(HyperRef{}) == "a parameter of the search");
  CHECK(kind_of(std::string("same")) == "a word");
  CHECK(kind_of(DType::kBool) == "a dtype");
  CHECK(kind_of(Complex{}) == "a complex number");
}

}  // namespace
}  // namespace hfta::fusion
