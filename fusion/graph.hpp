#pragma once
/// One model as a list of ATen calls over named values: what every importer produces and every lowering consumes.
/// Plain data, without torch.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hfta::fusion {

enum class DType { kFloat32, kFloat64, kInt64 };

[[nodiscard]] const char* name_of(DType dtype);

/// Sizes of one sample-batch value; kBatch stands for N, which is known only when data flows.
using Shape = std::vector<std::int64_t>;
inline constexpr std::int64_t kBatch = -1;

/// "[N, 16, 8, 8]".
[[nodiscard]] std::string to_text(const Shape& shape);

/// Index into Graph::values.
using ValueId = int;

/// A literal of the graph that may differ between slots (a dropout rate): index into Graph::hypers.
struct HyperRef {
  int index = 0;
  bool operator==(const HyperRef&) const = default;
};

/// An argument of an ATen call. monostate is None.
using Arg = std::variant<std::monostate, ValueId, std::vector<ValueId>, std::int64_t, double, bool,
                         std::vector<std::int64_t>, HyperRef, std::string>;

// ValueId is int and so distinct from std::int64_t: Arg(ValueId{3}) is a value, Arg(std::int64_t{3}) a number.

/// One call. `args` stand in the order of the op's schema; trailing defaults may be left out.
struct Node {
  std::string op;  ///< "aten::conv2d", "aten::add.Tensor": schema name and overload.
  std::vector<Arg> args;
  std::vector<ValueId> outputs;
  std::string path;   ///< Module path, "layers.3": the name for bindings, lowering choices and counted randomness.
  std::string where;  ///< Where the user wrote it: "digits.yaml:20", or a line of their Python.
};

/// How a parameter or buffer gets its first values.
struct Init {
  enum class Kind { kZeros, kOnes, kUniform, kNormal };
  Kind kind = Kind::kZeros;
  double scale = 0;  ///< kUniform: U(-scale, scale); kNormal: standard deviation.
};

/// A tensor that each slot owns: a parameter (trained) or a buffer (running statistics).
struct Weight {
  std::string name;  ///< In the model's own words: "layers.0.weight".
  Shape shape;
  DType dtype = DType::kFloat32;
  Init init;
  bool trained = true;
  ValueId value = 0;
};

struct Value {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// A literal that may differ between slots.
struct Hyper {
  std::string path;  ///< "layers.3.p"
  double value = 0;  ///< This trial's.
};

/// A model. Training and evaluation are two readings of the same graph: in evaluation dropout is the identity and
/// batch norm uses its running statistics.
struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< In an order in which they can be run.
  std::vector<Weight> weights;
  std::vector<Hyper> hypers;
  std::vector<ValueId> inputs;
  ValueId output = 0;

  /// Text that two graphs share exactly if they can train side by side in one array: everything but `hypers`' values
  /// and `where`.
  [[nodiscard]] std::string signature() const;
  /// Number of trained parameters.
  [[nodiscard]] std::int64_t parameter_count() const;
};

}  // namespace hfta::fusion
