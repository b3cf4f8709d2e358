#pragma once
/// How each built-in loss is written as calls of ATen's ops. Internal to fusion/recipe.

#include <vector>

#include "fusion/graph/reduction.hpp"
#include "fusion/loss.hpp"
#include "fusion/recipe/graph_writer.hpp"

namespace hfta::fusion {

/// Arguments of the function that writes a loss.
struct LossSite {
  GraphWriter& graph;
  const LossOptions& options;
  ValueId output, target;
  std::vector<Arg> numbers;            ///< LossInfo::numbers: references to hypers, or literals.
  ValueId class_weight = kNoValue;     ///< [C], where the options have it.
  ValueId pos_weight = kNoValue;       ///< [1] or [K], where the options have it.
  ValueId position_weight = kNoValue;  ///< [N, ...]: counts_positions().
};

/// Writes the loss of every element or position (kNone), or their mean, with positions' weights where there are any.
using WriteLoss = ValueId (*)(const LossSite& site, Reduction reduction);

struct LossRow {
  LossInfo info;
  WriteLoss write;  ///< Null for kModel.
};

[[nodiscard]] std::vector<LossRow> class_losses();
[[nodiscard]] std::vector<LossRow> value_losses();
[[nodiscard]] std::vector<LossRow> binary_losses();
[[nodiscard]] const LossRow& row_of(Loss loss);

/// `each`, or its mean as a number.
[[nodiscard]] ValueId reduced(GraphWriter& graph, ValueId each, Reduction reduction);
/// The sum of `weighted` over the sum `total` of the weights. Where that is 0, the sum itself: of weights that are all
/// 0 it is 0, not the 0 / 0 that would make the model's weights NaN.
[[nodiscard]] ValueId weighted_mean(GraphWriter& graph, ValueId weighted, ValueId total);
/// The reduction as an op's argument.
[[nodiscard]] inline Arg to_arg(Reduction reduction) { return static_cast<std::int64_t>(reduction); }
/// Calls an op that takes `reduction` among its arguments.
[[nodiscard]] ValueId loss_call(const LossSite& site, const std::string& op, std::vector<Arg> args,
                                Reduction reduction);

}  // namespace hfta::fusion
