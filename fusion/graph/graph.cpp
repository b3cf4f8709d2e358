#include "fusion/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/graph/condition.hpp"
#include "fusion/graph/sizes.hpp"

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
        if constexpr (std::is_same_v<T, std::vector<double>>) {
          std::string text = "d[";
          for (const double number : a) text += shortest(number) + ",";
          return text + "]";
        }
        if constexpr (std::is_same_v<T, std::vector<Size>>) {
          std::string text = "n[";
          for (const Size& size : a)
            text += fmt::format("{}{},", size.value == kNoValue ? "" : "v",
                                size.value == kNoValue ? size.number : size.value);
          return text + "]";
        }
        if constexpr (std::is_same_v<T, DType>) return std::string("t") + name_of(a);
        if constexpr (std::is_same_v<T, ArrayDevice>) return "device";
        if constexpr (std::is_same_v<T, Complex>) return fmt::format("c{},{}", shortest(a.real), shortest(a.imag));
      },
      arg);
}

std::string signature_of(const Node& node) {
  std::string args;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (i < node.names.size()) args += counted(node.names[i]) + "=";
    args += signature_of(node.args[i]) + " ";
  }
  return fmt::format("{} = {}({}) {}{}\n", list_text(node.outputs), counted(node.op), args, counted(node.path),
                     node.no_gradient ? " no_grad" : "");
}

std::string signature_of(const Weight& weight) {
  const std::string padding =
      weight.padding ? fmt::format(" padding {} h{}", weight.padding->dim, weight.padding->used.index) : "";
  return fmt::format("{} {} {} {} {} {} {} v{}{}\n", counted(weight.name), list_text(weight.shape),
                     name_of(weight.dtype), static_cast<int>(weight.init.kind), shortest(weight.init.scale),
                     weight.init.zero_row, weight.trained ? "trained" : "buffer", weight.value, padding);
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
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt32:
      return "int32";
    case DType::kInt16:
      return "int16";
    case DType::kInt8:
      return "int8";
    case DType::kUInt8:
      return "uint8";
    case DType::kBool:
      return "bool";
    case DType::kComplex64:
      return "complex64";
    case DType::kComplex128:
      return "complex128";
  }
  return "?";
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

DType part_of(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kComplex128:
      return 16;
    case DType::kComplex64:
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

std::string to_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) {
    sizes.push_back(size == kBatch ? "N"
                    : size < 0     ? fmt::format("{}N", 0 - static_cast<std::uint64_t>(size))
                                   : std::to_string(size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::int64_t elements_of(const Shape& shape, std::int64_t n) {
  if (const std::optional<std::int64_t> elements = checked_elements(shape, n)) return *elements;
  throw Error(ErrorKind::kConfig,
              fmt::format("model: found a tensor {} for a batch of {}, beyond any machine", to_text(shape), n));
}

std::int64_t bytes_of(const Shape& shape, DType dtype, std::int64_t n) {
  if (const std::optional<std::int64_t> bytes = checked_bytes(shape, dtype, n)) return *bytes;
  throw Error(ErrorKind::kConfig, fmt::format("model: found a tensor {} {} for a batch of {}, beyond any machine",
                                              name_of(dtype), to_text(shape), n));
}

std::optional<std::int64_t> checked_elements(const Shape& shape, std::int64_t n) {
  std::optional<std::int64_t> elements = 1;
  for (const std::int64_t size : shape) {
    const std::optional<std::int64_t> of_batch = size < 0 ? checked_sub(0, size) : std::nullopt;
    const std::optional<std::int64_t> all = size >= 0 ? size : of_batch ? checked_mul(*of_batch, n) : std::nullopt;
    elements = all ? checked_mul(*elements, *all) : std::nullopt;
    if (!elements) return std::nullopt;
  }
  return elements;
}

std::optional<std::int64_t> checked_bytes(const Shape& shape, DType dtype, std::int64_t n) {
  const std::optional<std::int64_t> elements = checked_elements(shape, n);
  return elements ? checked_mul(*elements, size_of(dtype)) : std::nullopt;
}

std::int64_t sum_of_sizes(std::int64_t a, std::int64_t b) {
  if (const std::optional<std::int64_t> sum = checked_add(a, b)) return *sum;
  throw Error(ErrorKind::kConfig, "model: found tensors that are together beyond any machine");
}

std::string BatchLimits::broken_by(std::int64_t n) const {
  if (n < smallest) return fmt::format("at least {} samples", smallest);
  const auto broken = std::find_if(conditions.begin(), conditions.end(),
                                   [&](const std::string& condition) { return !holds(condition, n); });
  return broken == conditions.end() ? "" : *broken;
}

Shape Weight::model_shape() const { return pairs && !shape.empty() ? Shape(shape.begin(), shape.end() - 1) : shape; }

std::string Graph::signature() const {
  std::string out = "inputs " + list_text(inputs) + " outputs " + list_text(outputs) + "\n";
  if (objective) out += fmt::format("objective v{} v{}\n", objective->loss, objective->weight);
  for (const Value& value : values) {
    out += fmt::format("{} {} {}\n", counted(value.name), list_text(value.shape), name_of(value.dtype));
  }
  for (const Node& node : nodes) out += signature_of(node);
  for (const Weight& weight : weights) out += signature_of(weight);
  for (const Hyper& hyper : hypers) out += "hyper " + counted(hyper.path) + "\n";
  if (fixed_batch > 0) out += fmt::format("batch {}\n", fixed_batch);
  if (evaluation != nullptr) out += "evaluation " + counted(evaluation->signature()) + "\n";
  return out;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t total = 0;
  for (const Weight& weight : weights) {
    if (!weight.trained) continue;
    Shape shape = weight.model_shape();
    if (const std::optional<Padding>& padding = weight.padding) {
      const double used = hypers[static_cast<std::size_t>(padding->used.index)].value;
      shape[padding->dim] = static_cast<std::int64_t>(used);
    }
    total = sum_of_sizes(total, elements_of(shape, 1));
  }
  return total;
}

}  // namespace hfta::fusion
