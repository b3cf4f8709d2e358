#include "fusion/graph.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "base/text.hpp"

namespace hfta::fusion {
namespace {

// Every field of the signature carries its kind or its length, so that no two graphs can spell the same text.
std::string counted(const std::string& text) { return fmt::format("{}:{}", text.size(), text); }

template <typename T>
std::string list_text(const std::vector<T>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

std::string signature_of(const Arg& arg) {
  return std::visit(
      [](const auto& a) -> std::string {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, std::monostate>) return "none";
        if constexpr (std::is_same_v<T, ValueId>) return fmt::format("v{}", a);
        if constexpr (std::is_same_v<T, std::vector<ValueId>>) return "v" + list_text(a);
        if constexpr (std::is_same_v<T, std::int64_t>) return fmt::format("i{}", a);
        if constexpr (std::is_same_v<T, double>) return "d" + shortest(a);
        if constexpr (std::is_same_v<T, bool>) return a ? "true" : "false";
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) return "i" + list_text(a);
        if constexpr (std::is_same_v<T, HyperRef>) return fmt::format("h{}", a.index);
        if constexpr (std::is_same_v<T, std::string>) return "s" + counted(a);
      },
      arg);
}

std::string signature_of(const Node& node) {
  std::string args;
  for (const Arg& arg : node.args) args += signature_of(arg) + " ";
  return fmt::format("{} = {}({}) {}\n", list_text(node.outputs), counted(node.op), args, counted(node.path));
}

std::string signature_of(const Weight& weight) {
  return fmt::format("{} {} {} {} {} {} v{}\n", counted(weight.name), list_text(weight.shape), name_of(weight.dtype),
                     static_cast<int>(weight.init.kind), shortest(weight.init.scale),
                     weight.trained ? "trained" : "buffer", weight.value);
}

}  // namespace

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
  }
  return "?";
}

std::string to_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(size == kBatch ? "N" : std::to_string(size));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string Graph::signature() const {
  std::string out = "inputs " + list_text(inputs) + " output " + std::to_string(output) + "\n";
  for (const Value& value : values) {
    out += fmt::format("{} {} {}\n", counted(value.name), list_text(value.shape), name_of(value.dtype));
  }
  for (const Node& node : nodes) out += signature_of(node);
  for (const Weight& weight : weights) out += signature_of(weight);
  for (const Hyper& hyper : hypers) out += "hyper " + counted(hyper.path) + "\n";
  return out;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t total = 0;
  for (const Weight& weight : weights) {
    if (!weight.trained) continue;
    std::int64_t elements = 1;
    for (const std::int64_t size : weight.shape) elements *= size;
    total += elements;
  }
  return total;
}

}  // namespace hfta::fusion
