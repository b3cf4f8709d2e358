#pragma once
// One call of each op that has a rule, as a graph of its own.

#include <string>
#include <vector>

#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {

/// Where a tensor argument comes from.
enum class From {
  kSlot,           ///< Samples times a number of the slot's own: differs between slots.
  kPositive,       ///< Its softplus.
  kUnit,           ///< Its sigmoid: from 0 to 1.
  kWeight,         ///< A trained weight.
  kFrozen,         ///< A weight that slots share.
  kBuffer,         ///< Positive numbers that each slot owns where the op writes them.
  kTarget,         ///< Numbers from 0 to 1 of the samples.
  kIndex,          ///< Whole numbers 0 to 2 of the samples.
  kMask,           ///< true and false, of the samples.
  kComplex,        ///< Complex numbers, of pairs as kSlot has them.
  kComplexWeight,  ///< Complex numbers, of pairs that are a trained weight.
};

struct Tensor {
  Shape shape;  ///< kSlot, kIndex, kMask: kBatch first.
  From from = From::kSlot;
};

/// A literal, a tensor, or a list of tensors.
struct CaseArg {
  Arg literal;
  std::vector<Tensor> tensors = {};
  bool list = false;
};

/// What reads an op's result.
enum class ReadBy { kOthers, kRelu, kReluInPlace, kReluAndOthers };

struct OpCase {
  std::string op;
  std::vector<CaseArg> args;  ///< Those beyond are the schema's defaults.
  std::string note = "";
  bool complex = false;  ///< It gives complex numbers.
  ReadBy read_by = ReadBy::kOthers;
};

/// Cases of every rule: written out where an op wants particular arguments, else made from its schema.
[[nodiscard]] std::vector<OpCase> op_cases();

/// The case as a model with mean squared error against zero; three slots' hyperparameters come from trial().
[[nodiscard]] Model model_of(const OpCase& op_case, DType floats = DType::kFloat64);

/// The same in float32, with the precision bfloat16. `rounded`: what is of slots and samples comes to the op in
/// bfloat16, as a product would leave it, beside weights in float32.
[[nodiscard]] Model model_in_bfloat16_of(const OpCase& op_case, bool rounded);

}  // namespace hfta::fusion::testing
