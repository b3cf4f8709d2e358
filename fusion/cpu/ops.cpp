#include "fusion/cpu/ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

const std::unordered_map<std::string, Compile>& table() {
  static const std::unordered_map<std::string, Compile> all = [] {
    std::unordered_map<std::string, Compile> map;
    for (auto* family : {&linear_ops, &pointwise_ops, &shape_ops, &select_ops, &join_ops, &conv_ops, &pool_ops,
                         &batch_norm_ops, &norm_ops, &embedding_ops, &softmax_ops, &matmul_ops, &attention_ops,
                         &reduce_ops, &cumsum_ops, &choose_ops, &recurrent_ops, &constant_ops, &loss_ops}) {
      for (const NamedCompiler& op : (*family)()) map.emplace(op.op, op.compile);
    }
    return map;
  }();
  return all;
}

double real(const Number& number) {
  return std::visit([](auto x) { return static_cast<double>(x); }, number);
}

std::optional<std::int64_t> whole(const Number& number) {
  if (const auto* value = std::get_if<double>(&number)) return exact_integer(*value);
  return std::visit([](auto x) { return static_cast<std::int64_t>(x); }, number);
}

}  // namespace

Compile find_compiler(const std::string& op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second;
}

bool has_compiler(const Graph& graph, const Node& node) {
  const auto is_complex_value = [&](ValueId id) {
    return id != kNoValue && is_complex(graph.values[static_cast<std::size_t>(id)].dtype);
  };
  const std::vector<ValueId> read = inputs_of(node);
  if (std::any_of(read.begin(), read.end(), is_complex_value)) return false;
  if (std::any_of(node.outputs.begin(), node.outputs.end(), is_complex_value)) return false;
  return find_compiler(node.op) != nullptr || find_compiler(out_of_place(node.op)) != nullptr;
}

std::vector<std::string> compiled_ops() {
  std::vector<std::string> names;
  for (const auto& [name, compile] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void LoweringContext::fail(const std::string& what) const {
  throw CallError(node_, fmt::format("{}: {}: {}: cannot be compiled: {}", call_.where, call_.path, call_.op, what));
}

Tensor LoweringContext::tensor(std::size_t i) const {
  const auto* id = argument<ValueId>(i);
  if (id == nullptr || !b.bound(*id)) fail(fmt::format("argument {} is no tensor", i));
  return b.value(*id);
}

Tensor LoweringContext::floats(std::size_t i) const {
  Tensor t = tensor(i);
  if (t.dtype != b.dtype()) {
    fail(fmt::format("argument {} is {}, wanted {}", i, name_of(t.dtype), name_of(b.dtype())));
  }
  return t;
}

Tensor LoweringContext::floats_or_none(std::size_t i, const Dims& sizes) const {
  if (is_none(i)) return {};
  Tensor t = floats(i);
  if (t.sizes != sizes) {
    fail(fmt::format("argument {} is {}, wanted {}", i, to_text(t.sizes), to_text(sizes)));
  }
  return t;
}

std::vector<Tensor> LoweringContext::tensors(std::size_t i) const {
  const auto* ids = argument<std::vector<ValueId>>(i);
  if (ids == nullptr) fail(fmt::format("argument {} is no list of tensors", i));
  std::vector<Tensor> out;
  for (const ValueId id : *ids) {
    if (id == kNoValue || !b.bound(id)) fail(fmt::format("argument {} holds what is no tensor", i));
    out.push_back(b.value(id));
  }
  return out;
}

bool LoweringContext::is_number(std::size_t i) const {
  const Arg& arg = argument_at(call_, i);
  if (const auto* id = std::get_if<ValueId>(&arg)) return b.number(*id).has_value();
  return std::holds_alternative<double>(arg) || std::holds_alternative<std::int64_t>(arg);
}

Number LoweringContext::literal(std::size_t i) const {
  const Arg& arg = argument_at(call_, i);
  if (const auto* id = std::get_if<ValueId>(&arg); id != nullptr && b.number(*id)) return *b.number(*id);
  if (const auto* integer = std::get_if<std::int64_t>(&arg)) return *integer;
  if (const auto* value = std::get_if<double>(&arg)) return *value;
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag;
  fail(fmt::format("argument {} is no number that is known beforehand", i));
}

double LoweringContext::number(std::size_t i) const { return real(literal(i)); }

std::int64_t LoweringContext::integer(std::size_t i) const {
  const std::optional<std::int64_t> value = whole(literal(i));
  if (!value) fail(fmt::format("argument {} is {}, wanted an integer", i, number(i)));
  return *value;
}

bool LoweringContext::flag(std::size_t i) const {
  const auto* flag = argument<bool>(i);
  if (flag == nullptr) fail(fmt::format("argument {} is neither true nor false", i));
  return *flag;
}

Dims LoweringContext::ints(std::size_t i) const {
  const Arg& arg = argument_at(call_, i);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&arg)) return *numbers;
  if (const auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
    Dims out;
    for (const Size& size : *sizes) {
      if (size.value != kNoValue && !b.number(size.value)) fail(fmt::format("argument {} is not known beforehand", i));
      const std::optional<std::int64_t> number = size.value == kNoValue ? size.number : whole(*b.number(size.value));
      if (!number) fail(fmt::format("argument {} is {}, wanted an integer", i, real(*b.number(size.value))));
      out.push_back(*number);
    }
    return out;
  }
  fail(fmt::format("argument {} is no list of sizes", i));
}

std::optional<int> LoweringContext::hyper(std::size_t i) const {
  const auto* ref = argument<HyperRef>(i);
  return ref == nullptr ? std::nullopt : std::optional(ref->index);
}

std::function<double(const Run&)> LoweringContext::slot_number(std::size_t i) const {
  if (const auto own = hyper(i))
    return [at = static_cast<std::size_t>(*own)](const Run& run) { return run.hypers[at]; };
  return [value = number(i)](const Run&) { return value; };
}

}  // namespace hfta::fusion::cpu
