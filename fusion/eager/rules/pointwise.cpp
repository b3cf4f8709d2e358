// Element by element: the op itself on [c, N, ...]; lower ranks get ones behind their slots.
#include "fusion/eager/batching_rules.hpp"

namespace hfta::fusion {

std::vector<BatchingRule> pointwise_rules() {
  std::vector<BatchingRule> rules;
  // With a form in place, "_" behind the name.
  for (const char* op : {"relu", "relu6",   "leaky_relu", "elu",        "selu",        "celu",     "gelu",  "silu",
                         "mish", "sigmoid", "tanh",       "hardswish",  "hardsigmoid", "hardtanh", "exp",   "expm1",
                         "log",  "log1p",   "log2",       "sqrt",       "rsqrt",       "square",   "abs",   "neg",
                         "sin",  "cos",     "erf",        "reciprocal", "floor",       "ceil",     "round", "trunc",
                         "sign", "clamp",   "clamp_min",  "clamp_max",  "logical_not"}) {
    rules.push_back({std::string("aten::") + op, "pointwise", {}});
    rules.push_back({std::string("aten::") + op + "_", "pointwise", {}});
  }
  for (const char* op : {"add.Tensor",        "sub.Tensor", "mul.Tensor", "div.Tensor",        "add.Scalar",
                         "sub.Scalar",        "mul.Scalar", "div.Scalar", "div.Tensor_mode",   "pow.Tensor_Scalar",
                         "pow.Tensor_Tensor", "eq.Scalar",  "ne.Scalar",  "lt.Scalar",         "le.Scalar",
                         "gt.Scalar",         "ge.Scalar",  "eq.Tensor",  "ne.Tensor",         "lt.Tensor",
                         "le.Tensor",         "gt.Tensor",  "ge.Tensor",  "masked_fill.Scalar"}) {
    const std::string name = op;
    const std::size_t dot = name.find('.');
    const bool power = name.starts_with("pow");
    rules.push_back({"aten::" + name, "pointwise", {}});
    const std::string overload = power ? (name.ends_with("Scalar") ? ".Scalar" : ".Tensor") : name.substr(dot);
    rules.push_back({"aten::" + name.substr(0, dot) + "_" + overload, "pointwise", {}});
  }
  for (const char* op : {"softplus",

                         "log_sigmoid",

                         "hardshrink",
                         "softshrink",

                         "where.self",
                         "maximum",
                         "minimum",
                         "rsub.Scalar",
                         "rsub.Tensor",
                         "lerp.Scalar",
                         "lerp_.Scalar",
                         "clone",
                         "contiguous",
                         "detach",
                         "alias",
                         "to.dtype",
                         "type_as",
                         "zeros_like",
                         "ones_like",
                         "full_like",

                         "fill_.Scalar",
                         "zero_",
                         "constant_pad_nd",
                         "bitwise_not",
                         "bitwise_and.Tensor",
                         "bitwise_or.Tensor",
                         "logical_and",
                         "logical_or",
                         "isnan",
                         "isinf"}) {
    rules.push_back({std::string("aten::") + op, "pointwise", {}});
  }
  return rules;
}

}  // namespace hfta::fusion
