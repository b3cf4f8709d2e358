// Element by element: the op itself on [c, N, ...]; lower ranks get ones behind their slots.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/counted.hpp"

namespace hfta::fusion {
namespace {

// A tensor times, or divided by, a number of the slot's own: the scale of an adapter. The number has the type in which
// PyTorch computes with a Python number: of whole numbers the default one, of numbers of 16 bits float32.
template <bool kDivides>
std::vector<at::Tensor> scaled(const OpCall& call) {
  const at::ScalarType type = at::result_type(call.tensor(0), at::Scalar(1.0)), computed = at::toOpMathType(type);
  const at::Tensor x = call.tensor(0).to(computed);
  const at::Tensor number = beside(call.per_slot(1), call, x.dim(), x.options());
  return {(kDivides ? x / number : x * number).to(type)};
}

// The other tensor gives its type alone: ranks need not agree.
std::vector<at::Tensor> type_as(const OpCall& call) { return {call.tensor(0).to(call.tensor(1).scalar_type())}; }

// By name and overload; nullptr: a number of the slot's own is put in slot by slot.
auto per_slot_form(const std::string& op) -> decltype(BatchingRule::per_slot) {
  if (op == "mul.Tensor" || op == "mul.Scalar") return scaled<false>;
  return op == "div.Tensor" || op == "div.Scalar" ? scaled<true> : nullptr;
}

}  // namespace

std::vector<BatchingRule> pointwise_rules() {
  std::vector<BatchingRule> rules;
  // These ops also have a form in place, with "_" behind the name.
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
    rules.push_back({"aten::" + name, "pointwise", {}, {}, nullptr, per_slot_form(name)});
    const std::string overload = power ? (name.ends_with("Scalar") ? ".Scalar" : ".Tensor") : name.substr(dot);
    rules.push_back({"aten::" + name.substr(0, dot) + "_" + overload, "pointwise", {}});
  }
  for (const char* op : {"softplus",

                         "log_sigmoid",

                         "hardshrink",        "softshrink",

                         "where.self",        "maximum",      "minimum",         "rsub.Scalar", "rsub.Tensor",
                         "lerp.Scalar",       "lerp_.Scalar", "detach",          "alias",       "to.dtype",
                         "zeros_like",        "ones_like",    "full_like",

                         "fill_.Scalar",      "zero_",        "constant_pad_nd", "bitwise_not", "bitwise_and.Tensor",
                         "bitwise_or.Tensor", "logical_and",  "logical_or",      "isnan",       "isinf"}) {
    rules.push_back({std::string("aten::") + op, "pointwise", {}});
  }
  rules.push_back({"aten::type_as", "pointwise", {{"type_alone", type_as, nullptr}}});
  return rules;
}

}  // namespace hfta::fusion
