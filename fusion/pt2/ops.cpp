#include "fusion/pt2/ops.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hfta::fusion::pt2 {
namespace {

constexpr std::string_view kOps = "torch.ops.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

constexpr std::array<std::pair<std::string_view, std::string_view>, 36> kNumberOps = {{
    {"_operator.add", "add"},
    {"_operator.sub", "sub"},
    {"_operator.mul", "mul"},
    {"_operator.floordiv", "floordiv"},
    {"_operator.truediv", "truediv"},
    {"_operator.mod", "mod"},
    {"_operator.pow", "pow"},
    {"_operator.neg", "neg"},
    {"_operator.abs", "abs"},
    {"_operator.eq", "eq"},
    {"_operator.ne", "ne"},
    {"_operator.lt", "lt"},
    {"_operator.le", "le"},
    {"_operator.gt", "gt"},
    {"_operator.ge", "ge"},
    {"_operator.and_", "and"},
    {"_operator.or_", "or"},
    {"_operator.not_", "not"},
    {"builtins.abs", "abs"},
    {"builtins.max", "max"},
    {"builtins.min", "min"},
    {"builtins.round", "round"},
    {"math.ceil", "ceil"},
    {"math.floor", "floor"},
    {"math.trunc", "trunc"},
    {"math.sqrt", "sqrt"},
    {"torch.sym_not", "not"},
    {"torch.sym_ite", "ite"},
    {"torch.sym_int", "to_int"},
    {"torch.sym_float", "to_float"},
    {"torch.sym_max", "max"},
    {"torch.sym_min", "min"},
    {"torch.sym_sqrt", "sqrt"},
    {"torch.ops.aten.sym_size.int", "size"},
    {"torch.ops.aten.sym_numel.default", "numel"},
    {"torch.ops.aten.sym_stride.int", "stride"},
}};

constexpr std::array<std::string_view, 9> kAssertions = {"_assert_async",
                                                         "_assert_scalar",
                                                         "_assert_tensor_metadata",
                                                         "sym_constrain_range",
                                                         "sym_constrain_range_for_size",
                                                         "_functional_assert_async",
                                                         "_functional_assert_scalar",
                                                         "_functional_sym_constrain_range",
                                                         "_functional_sym_constrain_range_for_size"};

}  // namespace

std::string op_from(const std::string& target) {
  if (!target.starts_with(kOps) || target.starts_with(kHigherOrder)) return "";
  const std::string name = target.substr(kOps.size());
  const std::size_t first = name.find('.');
  const std::size_t last = name.rfind('.');
  if (first == std::string::npos || first == last) return "";
  const std::string op = name.substr(0, first) + "::" + name.substr(first + 1, last - first - 1);
  const std::string overload = name.substr(last);
  return overload == ".default" ? op : op + overload;
}

std::string number_op_from(const std::string& target) {
  // Python's square root hides behind an underscore.
  const std::string name = target == "torch._sym_sqrt" ? "torch.sym_sqrt" : target;
  const auto found =
      std::find_if(kNumberOps.begin(), kNumberOps.end(), [&](const auto& op) { return op.first == name; });
  return found == kNumberOps.end() ? "" : "number::" + std::string(found->second);
}

std::string higher_order_from(const std::string& target) {
  return target.starts_with(kHigherOrder) ? target.substr(kHigherOrder.size()) : "";
}

std::string without_out(const std::string& op) {
  // Ops whose overload `out` belongs to the overload `Tensor`; that of all others belongs to the one without a name.
  constexpr std::array<std::string_view, 8> kOfTensors = {"add",      "sub",      "mul",    "div",
                                                          "subtract", "multiply", "divide", "true_divide"};
  constexpr std::string_view kSuffix = "_out";
  const std::size_t dot = op.find('.');
  if (dot == std::string::npos) return "";
  const std::string base = op.substr(0, dot), overload = op.substr(dot + 1);
  if (overload == "out") {
    const bool of_tensors = std::find(kOfTensors.begin(), kOfTensors.end(), bare_name(op)) != kOfTensors.end();
    return of_tensors ? base + ".Tensor" : base;
  }
  if (!overload.ends_with(kSuffix)) return "";
  return base + "." + overload.substr(0, overload.size() - kSuffix.size());
}

bool is_assertion(const std::string& op) {
  return std::find(kAssertions.begin(), kAssertions.end(), bare_name(op)) != kAssertions.end();
}

std::string bare_name(const std::string& op) {
  const std::size_t colons = op.find("::");
  const std::string name = colons == std::string::npos ? op : op.substr(colons + 2);
  return name.substr(0, name.find('.'));
}

}  // namespace hfta::fusion::pt2
