#include "fusion/eager/numbers.hpp"

#include <ATen/ATen.h>

#include <optional>

#include "base/error.hpp"
#include "fusion/graph/arguments.hpp"
#include "fusion/graph/numbers.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

using c10::IValue;

IValue argument(const Arg& arg, std::span<const IValue> values) {
  if (const auto* id = std::get_if<ValueId>(&arg)) return values[static_cast<std::size_t>(*id)];
  if (const auto* number = std::get_if<std::int64_t>(&arg)) return *number;
  if (const auto* number = std::get_if<double>(&arg)) return *number;
  if (const auto* number = std::get_if<bool>(&arg)) return *number;
  throw Error(ErrorKind::kConfig, "found an argument that is no number, wanted one");
}

std::optional<IValue> of_tensor(const std::string& name, const Node& node, std::span<const IValue> values,
                                const std::vector<bool>& slotwise) {
  if (name != "size" && name != "numel" && name != "stride") return std::nullopt;
  const ValueId id = argument_as<ValueId>(node, 0);
  at::Tensor tensor = values[static_cast<std::size_t>(id)].toTensor();
  if (!slotwise.empty() && slotwise[static_cast<std::size_t>(id)]) tensor = tensor.select(0, 0);
  if (name == "numel") return tensor.numel();
  const std::int64_t dim = argument(argument_at(node, 1), values).toInt();
  return name == "size" ? tensor.size(dim) : tensor.stride(dim);
}

}  // namespace

IValue number_of(const Node& node, std::span<const IValue> values, const std::vector<bool>& slotwise) {
  if (auto size = of_tensor(node.op.substr(std::string("number::").size()), node, values, slotwise)) return *size;
  std::vector<Number> args;
  for (const Arg& arg : node.args) {
    const IValue value = argument(arg, values);
    args.push_back(value.isBool()  ? Number(value.toBool())
                   : value.isInt() ? Number(value.toInt())
                                   : Number(value.toDouble()));
  }
  try {
    return std::visit([](auto number) { return IValue(number); }, number_of(node.op, args));
  } catch (const Error& error) {
    fail_at(node, error.what());
  }
}

}  // namespace hfta::fusion
