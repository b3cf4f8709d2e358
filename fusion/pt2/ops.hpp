#pragma once
/// The names that torch.export gives to calls, and ours.

#include <optional>
#include <string>

namespace hfta::fusion::pt2 {

/// "torch.ops.aten.add.Tensor": "aten::add.Tensor"; "torch.ops.aten.conv2d.default": "aten::conv2d"; "": none of those.
[[nodiscard]] std::string op_from(const std::string& target);
/// "_operator.add": "number::add"; "": computes no number.
[[nodiscard]] std::string number_op_from(const std::string& target);
/// The name of a higher-order op, "cond"; "": none.
[[nodiscard]] std::string higher_order_from(const std::string& target);
/// Checks that raise or pass, and bounds on symbols: no part of training.
[[nodiscard]] bool is_assertion(const std::string& op);
/// The name alone: "dropout" of "aten::dropout", "bernoulli_" of "aten::bernoulli_.float".
[[nodiscard]] std::string bare_name(const std::string& op);

}  // namespace hfta::fusion::pt2
