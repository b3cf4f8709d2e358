#pragma once
/// The records of torch.export's schema, major version 8 (torch/_export/serde/schema.py), as far as a model needs them.
/// Views of the JSON: its document must outlive them.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/pt2/json.hpp"

namespace hfta::fusion::pt2 {

/// A size: a number, or an expression of symbols ("Mul(Integer(2), Symbol('s77', ...))") with its value at export.
struct SymInt {
  std::int64_t number = 0;
  std::string expression;  ///< "": `number` counts.
  std::optional<std::int64_t> hint;
};

struct TensorMeta {
  DType dtype = DType::kFloat32;
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides;
  SymInt offset;
  bool requires_grad = false;
};

/// One member of a tagged union, such as {"as_tensor": {"name": "x"}}.
struct Tagged {
  std::string tag;
  Reader value;
};

/// A module that was running when a node was recorded.
struct ModuleEntry {
  std::string path;  ///< "layers.3"; "" is the model.
  std::string type;  ///< "torch.nn.modules.linear.Linear".
};

struct NodeRecord {
  std::string target;  ///< "torch.ops.aten.conv2d.default".
  std::vector<std::pair<std::string, Tagged>> inputs;
  std::vector<Tagged> outputs;
  std::vector<ModuleEntry> modules;  ///< Outermost first.
  std::string path;                  ///< Path of the innermost; kModelPath for the model itself.
  std::string where;                 ///< "model.py:12"; "" if the archive does not say.
  std::string function;              ///< The autograd.Function that made the call, as function_from() says it.
  std::string place;                 ///< "model.pt2: model.py:12: layers.3 (torch.ops.aten.add.Tensor)", for messages.
};

[[nodiscard]] DType dtype_from(const Reader& number);
[[nodiscard]] SymInt sym_int_from(const Reader& json);
[[nodiscard]] TensorMeta tensor_meta_from(const Reader& json);
/// Dimensions from the slowest to the fastest, by strides at export (Value::order); those of one element count for
/// nothing.
[[nodiscard]] std::vector<std::int64_t> order_in_memory(const TensorMeta& meta);
[[nodiscard]] Tagged tagged_from(const Reader& json);
[[nodiscard]] std::vector<Tagged> tagged_list_from(const Reader& json);
/// `file` begins the messages about it.
[[nodiscard]] NodeRecord node_from(const Reader& json, const std::string& file);

/// A leaf of what a model returns; None and numbers are leaves, too.
struct Leaf {
  std::string name;          ///< "logits", "0", "aux.1"
  std::size_t position = 0;  ///< Position among the model's results, each of which may hold several leaves.
};

/// The leaves of an output treespec; `fields` names those of named tuples.
[[nodiscard]] std::vector<Leaf> leaves_of(const std::string& spec, const Json& fields, const std::string& place);

}  // namespace hfta::fusion::pt2
