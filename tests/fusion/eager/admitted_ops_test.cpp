// What LibTorch says of the ops that a model may use, held against what fusion/op_traits.hpp says.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "fusion/op_traits.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion {
namespace {

// Tensors, and what a graph can write down: numbers, sizes, words. No storage, stream, function or object.
bool is_plain(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType:
      return is_plain(*type.containedType(0));
    case c10::TypeKind::TensorType:
    case c10::TypeKind::IntType:  // also dtypes, layouts and memory formats
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::GeneratorType:
      return true;
    default:
      return false;
  }
}

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::ListType) return holds_tensors(*type.containedType(0));
  return type.kind() == c10::TypeKind::TensorType;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

}  // namespace

TEST_CASE("an admitted op is a function of tensors and plain numbers, and writes to its first argument or to none") {
  int admitted = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string op = toString(name);
    const auto traits = op_traits(op);
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!traits || !handle) continue;
    ++admitted;
    const c10::FunctionSchema& schema = handle->schema();
    INFO(toString(schema));
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      INFO(argument.name());
      CHECK(is_plain(*argument.type()));
      CHECK(is_written(argument) == (traits->in_place && i == 0));
    }
    CHECK_FALSE(schema.returns().empty());
    for (const c10::Argument& result : schema.returns()) CHECK(holds_tensors(*result.type()));
    CHECK_FALSE(schema.is_vararg());
  }
  CHECK(admitted > 400);
}

}  // namespace hfta::fusion
