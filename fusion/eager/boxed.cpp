#include "fusion/eager/boxed.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "fusion/eager/autocast.hpp"
#include "fusion/graph/arguments.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

using c10::TypeKind;

// An argument's type without its Optional.
c10::TypePtr bare(const c10::TypePtr& type) {
  return type->kind() == TypeKind::OptionalType ? type->castRaw<c10::OptionalType>()->getElementType() : type;
}

bool is_list_of(const c10::TypePtr& type, TypeKind element) {
  return type->kind() == TypeKind::ListType && type->castRaw<c10::ListType>()->getElementType()->kind() == element;
}

bool is_optional_tensor_list(const c10::TypePtr& type) {
  if (!is_list_of(type, TypeKind::OptionalType)) return false;
  return bare(type->castRaw<c10::ListType>()->getElementType())->kind() == TypeKind::TensorType;
}

c10::IValue number_as(double number, const c10::TypePtr& type) {
  return type->kind() == TypeKind::TensorType ? c10::IValue(wrapped_number(number)) : c10::IValue(number);
}

// A literal as the schema's type wants it: ATen's boxed kernels do not turn an int into a float by themselves.
c10::IValue literal(const Arg& arg, const c10::TypePtr& type, const at::Device& device) {
  if (const auto* whole = std::get_if<std::int64_t>(&arg)) {
    if (type->kind() == TypeKind::TensorType) return wrapped_number(*whole);
    if (type->kind() == TypeKind::FloatType) return static_cast<double>(*whole);
    if (type->kind() == TypeKind::BoolType) return *whole != 0;
    if (is_list_of(type, TypeKind::FloatType)) return std::vector<double>{static_cast<double>(*whole)};
    if (type->kind() == TypeKind::ListType) return std::vector<std::int64_t>{*whole};
    return *whole;
  }
  if (const auto* number = std::get_if<double>(&arg)) return number_as(*number, type);
  if (const auto* number = std::get_if<Complex>(&arg)) {
    const c10::IValue complex = c10::complex<double>(number->real, number->imag);
    return type->kind() == TypeKind::TensorType ? c10::IValue(wrapped_number(complex)) : complex;
  }
  if (const auto* flag = std::get_if<bool>(&arg)) {
    return type->kind() == TypeKind::TensorType ? c10::IValue(wrapped_number(*flag)) : c10::IValue(*flag);
  }
  if (const auto* word = std::get_if<std::string>(&arg)) return *word;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&arg)) {
    if (is_list_of(type, TypeKind::FloatType)) return std::vector<double>(list->begin(), list->end());
    if (list->empty() && is_list_of(type, TypeKind::TensorType)) return std::vector<at::Tensor>();
    return *list;
  }
  if (const auto* list = std::get_if<std::vector<double>>(&arg)) return *list;
  if (const auto* dtype = std::get_if<DType>(&arg)) return static_cast<std::int64_t>(scalar_type(*dtype));
  if (std::holds_alternative<ArrayDevice>(arg)) return device;
  return {};
}

c10::IValue list_of(const std::vector<ValueId>& ids, std::span<const c10::IValue> values,
                    const BoxedOp::Change& change) {
  std::vector<at::Tensor> list;
  for (const ValueId id : ids) {
    const c10::IValue& value = values[static_cast<std::size_t>(id)];
    const at::Tensor tensor = value.isTensor() ? value.toTensor() : wrapped_number(value);
    list.push_back(change ? change(id, tensor) : tensor);
  }
  return list;
}

c10::IValue optional_list_of(const std::vector<ValueId>& ids, std::span<const c10::IValue> values,
                             const BoxedOp::Change& change) {
  c10::List<std::optional<at::Tensor>> list;
  for (const ValueId id : ids) {
    if (id == kNoValue) {
      list.push_back(std::nullopt);
      continue;
    }
    const at::Tensor& tensor = values[static_cast<std::size_t>(id)].toTensor();
    list.push_back(change ? change(id, tensor) : tensor);
  }
  return list;
}

// Whether the op makes complex numbers of real ones.
bool makes_complex(const Node& node) {
  const std::string name = node.op.substr(0, node.op.find('.'));
  const OpTraits* traits = op_traits(name);
  return name == "aten::complex" || name == "aten::polar" || name == "aten::view_as_complex" ||
         (traits != nullptr && traits->kind == OpClass::kTransform);
}

using Check = void (*)(std::span<const c10::IValue>);

// LibTorch subtracts and divides whole bounds as they are: where that overflows, the processor may end the process.
void check_range(std::span<const c10::IValue> arguments) {
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  for (const c10::IValue& argument : arguments) {
    if (!argument.isInt() || (argument.toInt() >= -kMost && argument.toInt() <= kMost)) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("aten::arange: found a bound or step of {}, wanted at most 2^61", argument.toInt()));
  }
}

// LibTorch takes any mode of a bag, and then reads tensors that it made for none of them.
void check_mode(std::span<const c10::IValue> arguments) {
  constexpr std::size_t kMode = 4;
  constexpr std::int64_t kLast = 2;  // sum, mean, max
  const std::int64_t mode = arguments[kMode].toInt();
  if (mode >= 0 && mode <= kLast) return;
  throw Error(ErrorKind::kConfig, fmt::format("aten::embedding_bag: found mode {}, wanted 0 to {}", mode, kLast));
}

Check check_of(std::string_view op) {
  constexpr std::pair<std::string_view, Check> kChecks[] = {
      {"arange", &check_range}, {"embedding_bag", &check_mode}, {"_embedding_bag", &check_mode}};
  const auto* found =
      std::find_if(std::begin(kChecks), std::end(kChecks), [&](const auto& row) { return row.first == op; });
  return found == std::end(kChecks) ? nullptr : found->second;
}

}  // namespace

at::Tensor wrapped_number(const c10::IValue& number) {
  at::Tensor wrapped;
  if (number.isInt()) {
    wrapped = at::scalar_tensor(number.toInt(), at::kLong);
  } else if (number.isBool()) {
    wrapped = at::scalar_tensor(number.toBool(), at::kBool);
  } else if (number.isComplexDouble()) {
    wrapped = at::scalar_tensor(number.toComplexDouble(), at::kComplexDouble);
  } else {
    wrapped = at::scalar_tensor(number.toDouble(), at::kDouble);
  }
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

std::vector<std::int64_t> resolve(const std::vector<Size>& sizes, std::span<const c10::IValue> values) {
  std::vector<std::int64_t> out;
  out.reserve(sizes.size());
  for (const Size& size : sizes) {
    out.push_back(size.value == kNoValue ? size.number : values[static_cast<std::size_t>(size.value)].toInt());
  }
  return out;
}

BoxedOp::BoxedOp(const Node& node, const at::Device& device)
    : op_(find_op(node)),
      device_(device.type()),
      makes_complex_(makes_complex(node)),
      check_(check_of(base_name(node.op))) {
  const std::vector<c10::Argument>& schema = op_.schema().arguments();
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const c10::TypePtr type = bare(schema[i].real_type());
    const Arg& arg = argument_at(node, i);
    literals_.emplace_back();
    if (const auto* value = std::get_if<ValueId>(&arg)) {
      values_.push_back({i, *value, type->kind() == TypeKind::TensorType});
    } else if (const auto* list = std::get_if<std::vector<ValueId>>(&arg)) {
      if (is_list_of(type, TypeKind::TensorType)) {
        if (std::find(list->begin(), list->end(), kNoValue) != list->end()) {
          fail_at(node, fmt::format("{}: found None in a list of tensors", schema[i].name()));
        }
        tensors_.emplace_back(i, *list);
      } else if (is_optional_tensor_list(type)) {
        optional_tensors_.emplace_back(i, *list);
      } else if (list->empty()) {
        literals_.back() = std::vector<std::int64_t>();
      } else {
        fail_at(node, fmt::format("{}: found a list of tensors, wanted {}", schema[i].name(), type->str()));
      }
    } else if (const auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
      sizes_.emplace_back(i, *sizes);
    } else if (const auto* hyper = std::get_if<HyperRef>(&arg)) {
      const bool tensor = type->kind() == TypeKind::TensorType;
      if (!tensor && type->kind() != TypeKind::FloatType && type->kind() != TypeKind::NumberType) {
        fail_at(node, fmt::format("{}: found a parameter of the search, wanted a fixed {}: it is no per-slot number",
                                  schema[i].name(), type->str()));
      }
      hypers_.push_back({i, hyper->index, tensor});
    } else {
      literals_.back() = literal(arg, type, device);
    }
  }
}

ValueEnv BoxedOp::call(std::span<const c10::IValue> values, std::span<const double> hypers,
                       const Change& change) const {
  torch::jit::Stack stack = literals_;
  for (const Filled& filled : values_) {
    const c10::IValue& value = values[static_cast<std::size_t>(filled.value)];
    if (!value.isTensor()) {
      stack[filled.position] = filled.tensor ? c10::IValue(wrapped_number(value)) : value;
    } else {
      stack[filled.position] = change ? c10::IValue(change(filled.value, value.toTensor())) : value;
    }
  }
  for (const auto& [i, ids] : tensors_) stack[i] = list_of(ids, values, change);
  for (const auto& [i, ids] : optional_tensors_) stack[i] = optional_list_of(ids, values, change);
  for (const auto& [i, sizes] : sizes_) stack[i] = resolve(sizes, values);
  for (const Hyper& own : hypers_) {
    const c10::IValue number = hypers[static_cast<std::size_t>(own.index)];
    stack[own.position] = own.tensor ? c10::IValue(wrapped_number(number)) : number;
  }
  if (check_ != nullptr) check_(stack);
  call_boxed(op_, device_, makes_complex_, stack);
  ValueEnv outputs;
  for (c10::IValue& value : stack) {
    if (!value.isTensorList()) {
      outputs.push_back(std::move(value));
      continue;
    }
    for (at::Tensor& tensor : value.toTensorVector()) outputs.emplace_back(std::move(tensor));
  }
  return outputs;
}

BoxedOp BoxedOp::with_slot_dimension(std::span<const int> dims) const {
  const auto moved_up = [](std::int64_t dim) { return dim >= 0 ? dim + 1 : dim; };
  BoxedOp moved = *this;
  for (const int i : dims) {
    c10::IValue& dim = moved.literals_.at(static_cast<std::size_t>(i));
    if (dim.isInt()) dim = moved_up(dim.toInt());
    if (dim.isIntList()) {
      std::vector<std::int64_t> all = dim.toIntVector();
      std::transform(all.begin(), all.end(), all.begin(), moved_up);
      dim = all;
    }
  }
  return moved;
}

}  // namespace hfta::fusion
