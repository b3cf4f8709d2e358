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
/// The op that gives as a result of its own what this one writes into its argument `out`: "aten::div.Tensor" of
/// "aten::div.out", "aten::clamp.Tensor" of "aten::clamp.Tensor_out"; "": the op has no such argument.
[[nodiscard]] std::string without_out(const std::string& op);
/// Checks that raise or pass, and bounds on symbols: no part of training.
[[nodiscard]] bool is_assertion(const std::string& op);
/// The name alone: "dropout" of "aten::dropout", "bernoulli_" of "aten::bernoulli_.float".
[[nodiscard]] std::string bare_name(const std::string& op);

}  // namespace hfta::fusion::pt2
