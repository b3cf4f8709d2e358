#include "fusion/array/boxed.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

c10::OperatorHandle find_op(const Node& node) {
  const std::size_t dot = node.op.find('.');
  const std::string name = node.op.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : node.op.substr(dot + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: {} ({}): this LibTorch has no such op", node.where, node.path, node.op));
  }
  return *handle;
}

// A literal as the schema's type wants it: ATen's boxed kernels do not turn an int into a float by themselves.
c10::IValue literal(const Arg& arg, const c10::Argument& wanted) {
  const c10::TypePtr type = wanted.type();
  const bool wants_float = type->isSubtypeOf(*c10::FloatType::get()) ||
                           (type->kind() == c10::TypeKind::OptionalType &&
                            type->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::FloatType);
  const bool wants_tensor = type->isSubtypeOf(*c10::TensorType::get());
  if (const auto* whole = std::get_if<std::int64_t>(&arg)) {
    if (wants_tensor) return at::scalar_tensor(*whole).squeeze();
    return wants_float ? c10::IValue(static_cast<double>(*whole)) : c10::IValue(*whole);
  }
  if (const auto* number = std::get_if<double>(&arg)) {
    if (!wants_tensor) return *number;
    at::Tensor wrapped = at::scalar_tensor(*number, at::kDouble);
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);  // takes part in type promotion as a Python number would
    return wrapped;
  }
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag;
  if (const auto* word = std::get_if<std::string>(&arg)) return *word;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&arg)) return *list;
  return {};
}

}  // namespace

int mode_flag_of(const std::string& op) {
  static const std::map<std::string, int> flags = {{"aten::batch_norm", 5}, {"aten::dropout", 2}};
  const auto it = flags.find(op);
  return it == flags.end() ? -1 : it->second;
}

BoxedOp::BoxedOp(const Node& node) : handle_(find_op(node)), mode_flag_(mode_flag_of(node.op)) {
  const std::vector<c10::Argument>& schema = handle_.schema().arguments();
  if (node.args.size() > schema.size()) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: {} ({}): found {} arguments, wanted at most {}", node.where,
                                                node.path, node.op, node.args.size(), schema.size()));
  }
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (i >= node.args.size()) {
      literals_.push_back(schema[i].default_value().value_or(c10::IValue()));
      continue;
    }
    const Arg& arg = node.args[i];
    if (const auto* value = std::get_if<ValueId>(&arg)) {
      tensors_.emplace_back(i, *value);
      literals_.emplace_back();
    } else if (const auto* list = std::get_if<std::vector<ValueId>>(&arg)) {
      lists_.emplace_back(i, *list);
      literals_.emplace_back();
    } else {
      literals_.push_back(literal(arg, schema[i]));
    }
  }
}

std::vector<at::Tensor> BoxedOp::call(std::span<const at::Tensor> values, bool training) const {
  torch::jit::Stack stack = literals_;
  for (const auto& [i, id] : tensors_) stack[i] = values[static_cast<std::size_t>(id)];
  for (const auto& [i, ids] : lists_) {
    std::vector<at::Tensor> list;
    for (const ValueId id : ids) list.push_back(values[static_cast<std::size_t>(id)]);
    stack[i] = list;
  }
  if (mode_flag_ >= 0 && !training) stack[static_cast<std::size_t>(mode_flag_)] = false;
  handle_.callBoxed(&stack);
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& value : stack) outputs.push_back(value.toTensor());
  return outputs;
}

BoxedOp BoxedOp::with_slot_dimension(std::span<const int> dims) const {
  BoxedOp moved = *this;
  for (const int i : dims) {
    c10::IValue& dim = moved.literals_.at(static_cast<std::size_t>(i));
    if (dim.isInt() && dim.toInt() >= 0) dim = dim.toInt() + 1;
  }
  return moved;
}

}  // namespace hfta::fusion
