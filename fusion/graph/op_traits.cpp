#include "fusion/op_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

/// All rows by name, without overload.
class Table {
 public:
  Table() {
    for (const auto& families : {element_families(), shape_families(), product_families(), complex_families(),
                                 layer_families(), random_families()}) {
      for (const OpFamily& family : families) add(family);
    }
  }

  [[nodiscard]] const OpTraits* find(const std::string& name) const {
    const auto found = traits_.find(name);
    return found == traits_.end() ? nullptr : &found->second;
  }

 private:
  void add(const OpFamily& family) {
    OpTraits overwriting = family.traits;
    overwriting.in_place = true;
    for (const std::string& name : words_in(family.names)) {
      traits_.try_emplace(name, family.forms == Forms::kInPlace ? overwriting : family.traits);
      if (family.forms == Forms::kBoth) traits_.try_emplace(name + "_", overwriting);
    }
  }

  std::unordered_map<std::string, OpTraits> traits_;
};

const Table& table() {
  static const Table all;
  return all;
}

struct Words {
  std::string space, name, overload;
};

// "aten::add.Tensor" -> "aten", "add", "Tensor".
Words words_of(const std::string& op) {
  const std::size_t colons = op.find("::");
  if (colons == std::string::npos) return {"", op, ""};
  const std::string rest = op.substr(colons + 2);
  const std::size_t dot = rest.find('.');
  return {op.substr(0, colons), rest.substr(0, dot), dot == std::string::npos ? "" : rest.substr(dot + 1)};
}

// Overloads that are called for their outputs, which are the caller's tensors.
constexpr std::array kWritingOverloads = {
    "L",          "OutScalar_Other", "OutScalar_Self", "OutTensor", "U",      "X",    "dim_max", "dim_min",
    "dim_values", "eigenvalues",     "eigvals",        "inverse",   "result", "sign", "values",  "values_stable"};

// Overloads that write into tensors of the caller's, take dimensions by name, or packed sequences, whose lengths
// nothing checks.
bool is_foreign_overload(const std::string& overload) {
  return overload == "out" || overload.starts_with("out_") || overload.ends_with("_out") ||
         overload.ends_with("output") || overload.ends_with("grad_input") ||
         std::find(kWritingOverloads.begin(), kWritingOverloads.end(), overload) != kWritingOverloads.end() ||
         overload.find("imname") != std::string::npos || overload.find("names") != std::string::npos ||
         overload == "data";
}

// Names of arguments that are factors or rates in all ops.
constexpr std::array<std::string_view, 23> kFactors = {
    "p",     "dropout", "dropout_p", "eps",    "momentum", "negative_slope", "alpha",          "beta",
    "scale", "value",   "other",     "weight", "lambd",    "threshold",      "min_val",        "max_val",
    "min",   "max",     "exponent",  "lower",  "upper",    "fill_value",     "label_smoothing"};

// "add_" -> "add", if the table has both.
std::string_view plain(std::string_view name) {
  const bool marked = name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
  return marked ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

const OpTraits* op_traits(const std::string& op) {
  const Words words = words_of(op);
  return words.space != "aten" || is_foreign_overload(words.overload) ? nullptr : table().find(words.name);
}

std::string why_not_admitted(const std::string& op) {
  const Words words = words_of(op);
  if (words.space != "aten") {
    return fmt::format("found an op of the library '{}'; a model may use PyTorch's own ops, not those of extensions",
                       words.space);
  }
  return "this op is none of those that a model may use, which are functions of tensors alone (docs/models.md)";
}

std::string_view base_name(std::string_view op) {
  const std::size_t colons = op.find("::");
  if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return plain(op.substr(0, op.find('.')));
}

std::string out_of_place(const std::string& op) {
  const OpTraits* traits = op_traits(op);
  if (traits == nullptr || !traits->in_place) return op;
  const Words words = words_of(op);
  const std::string name(plain(words.name));
  if (table().find(name) == nullptr) return op;
  return "aten::" + name + (words.overload.empty() ? "" : "." + words.overload);
}

const Arg* argument(const Node& node, std::string_view name) {
  if (name.empty()) return nullptr;
  for (std::size_t i = 0; i < node.names.size() && i < node.args.size(); ++i) {
    if (node.names[i] == name) return &node.args[i];
  }
  const OpTraits* traits = op_traits(node.op);
  if (traits == nullptr) return nullptr;
  const std::vector<std::string> names = words_in(traits->arguments);
  const auto position = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  const bool there = position < names.size() && position < node.args.size();
  const bool unnamed = there && (position >= node.names.size() || node.names[position].empty());
  return unnamed ? &node.args[position] : nullptr;
}

bool is_factor(const std::string& op, std::string_view argument) {
  const OpTraits* traits = op_traits(op);
  return std::find(kFactors.begin(), kFactors.end(), argument) != kFactors.end() &&
         (traits == nullptr || traits->whole != argument);
}

}  // namespace hfta::fusion
