#pragma once
/// One model as a list of ATen calls over named values: what every importer produces and every lowering consumes.
/// Plain data, without torch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hfta::fusion {

enum class DType {
  kFloat32,
  kFloat64,
  kInt64,
  kFloat16,
  kBFloat16,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex64,   ///< Two float32: the real and the imaginary part.
  kComplex128,  ///< Two float64.
};

[[nodiscard]] const char* name_of(DType dtype);
[[nodiscard]] bool is_floating(DType dtype);  ///< Complex numbers are not.
[[nodiscard]] bool is_complex(DType dtype);
/// The type of a complex number's parts; others are themselves.
[[nodiscard]] DType part_of(DType dtype);
/// Bytes of one element.
[[nodiscard]] std::int64_t size_of(DType dtype);

/// Sizes of one sample-batch value. N, the number of samples, is known only when data flows: kBatch stands for N, and
/// -k for k*N (windows of all images of a batch).
using Shape = std::vector<std::int64_t>;
inline constexpr std::int64_t kBatch = -1;

/// "[N, 16, 8, 8]", "[4N, 49, 96]".
[[nodiscard]] std::string to_text(const Shape& shape);
/// Elements for a batch of `n`. Throws Error{kConfig} where 64 bits do not hold them.
[[nodiscard]] std::int64_t elements_of(const Shape& shape, std::int64_t n);
/// Their bytes. Throws likewise.
[[nodiscard]] std::int64_t bytes_of(const Shape& shape, DType dtype, std::int64_t n);

/// Index into Graph::values.
using ValueId = int;
/// Stands for None in a list of values, and for an output that nothing reads in Node::outputs.
inline constexpr ValueId kNoValue = -1;

/// A literal of the graph that may differ between slots (a dropout rate): index into Graph::hypers.
struct HyperRef {
  int index = 0;
  bool operator==(const HyperRef&) const = default;
};

/// A size: a literal, or a number that is computed while the graph runs.
struct Size {
  std::int64_t number = 0;
  ValueId value = kNoValue;  ///< kNoValue: `number` counts.
  bool operator==(const Size&) const = default;
};

/// The array's device, in place of any device that the model names.
struct ArrayDevice {
  bool operator==(const ArrayDevice&) const = default;
};

/// A complex number.
struct Complex {
  double real = 0, imag = 0;
  bool operator==(const Complex&) const = default;
};

/// An argument of an ATen call. monostate is None.
using Arg =
    std::variant<std::monostate, ValueId, std::vector<ValueId>, std::int64_t, double, bool, std::vector<std::int64_t>,
                 HyperRef, std::string, std::vector<double>, std::vector<Size>, DType, ArrayDevice, Complex>;

// ValueId is int and so distinct from std::int64_t: Arg(ValueId{3}) is a value, Arg(std::int64_t{3}) a number.

/// One call. Ops are ATen's, and of a few numbers: "number::add", sub, mul, floordiv, truediv, mod, pow, neg, abs, min,
/// max, eq, ne, lt, le, gt, ge, and, or, not, ite, to_int, to_float, ceil, floor, round, trunc, sqrt, as Python has
/// them; "number::size" (tensor, dim), "number::numel" (tensor) and "number::stride" (tensor, dim).
struct Node {
  std::string op = {};         ///< "aten::conv2d", "aten::add.Tensor": schema name and overload.
  std::vector<Arg> args = {};  ///< Defaults may be left out.
  /// Values that the op returns, in order; a list of tensors that it returns is spread out.
  std::vector<ValueId> outputs = {};
  std::string path = {};   ///< Module path, "layers.3": the name for bindings, lowering choices and counted randomness.
  std::string where = {};  ///< Where the user wrote the call: "digits.yaml:20", or a line of their Python.
  bool no_gradient = false;  ///< Whether the call was made under torch.no_grad().
  /// Names of `args` in the op's schema; arguments beyond its end, and those named "", are in the schema's order.
  std::vector<std::string> names = {};
};

/// How a parameter or buffer gets its first values.
struct Init {
  enum class Kind { kZeros, kOnes, kUniform, kNormal, kStored, kTruncatedNormal, kOrthogonal, kJittered };
  Kind kind = Kind::kZeros;
  /// kUniform: U(-scale, scale); kNormal: standard deviation, and of kTruncatedNormal before it is cut off at 2 *
  /// scale; kOrthogonal: the gain; kJittered: stored values plus normal ones of this part of their standard deviation.
  double scale = 0;
  int zero_row = -1;  ///< Row that is zero whatever the kind (an embedding's padding_idx); -1: none.
};

/// A dimension of which each slot uses only the first elements, as many as its number Graph::hypers[used] says. The
/// rest are zero, and a training that keeps zeros (fusion/adapters.hpp) leaves them so: slots of one array have tensors
/// of one shape, though their own are smaller.
struct Padding {
  std::size_t dim = 0;
  HyperRef used = {};
  bool operator==(const Padding&) const = default;
};

/// A tensor as a file holds it: row-major, little endian.
struct StoredTensor {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  std::vector<std::byte> bytes = {};
};

/// A parameter, or a buffer (running statistics, masks, constants). Slots own the weights that are trained or written
/// while training; the others are held once for all slots.
struct Weight {
  std::string name = {};  ///< The name in the model: "layers.0.weight".
  Shape shape = {};
  DType dtype = DType::kFloat32;
  Init init = {};
  bool trained = true;
  ValueId value = 0;
  std::shared_ptr<const StoredTensor> stored = {};  ///< First values, kStored and kJittered; of any dtype.
  std::vector<std::string> tied = {};               ///< Other names that it has in a state dict.
  /// A complex tensor of the model, held as torch.optim sees it: pairs of a real and an imaginary part along one more
  /// dimension, the last. `stored` has the complex numbers.
  bool pairs = false;
  std::optional<Padding> padding = {};  ///< First values are drawn for what the slot uses, as if it were alone.
  bool per_slot = false;  ///< Slots have their own though this graph does not train it: another phase does.

  /// The shape that the model gives it: without the last dimension of `pairs`.
  [[nodiscard]] Shape model_shape() const;
};

/// A tensor, or a number (sizes computed from N).
struct Value {
  std::string name = {};
  Shape shape = {};
  DType dtype = DType::kFloat32;
  bool number = false;
  /// Dimensions from the slowest to the fastest in memory, as PyTorch had the tensor; empty: row-major.
  std::vector<std::int64_t> order = {};
};

/// A literal that may differ between slots.
struct Hyper {
  std::string path = {};  ///< "layers.3.p"
  double value = 0;       ///< This trial's value.
};

/// Limits on the batch sizes that a graph may run with.
struct BatchLimits {
  std::int64_t smallest = 0;
  /// Conditions on N, "(N % 2) == 0", as graph/condition.hpp reads them: for other batches the model might have
  /// been exported differently.
  std::vector<std::string> conditions = {};

  /// The limit that a batch of `n` breaks, in words: "at least 2 samples", "(N % 2) == 0"; "": none.
  [[nodiscard]] std::string broken_by(std::int64_t n) const;
  [[nodiscard]] bool allow(std::int64_t n) const { return broken_by(n).empty(); }
};

/// What training minimizes: two values of a graph, numbers of a batch (tensors without dimensions).
struct Objective {
  ValueId loss = 0;           ///< The batch's mean loss.
  ValueId weight = kNoValue;  ///< What the mean was divided by (tokens, say): how much the batch counts in an epoch's
                              ///< mean and in a step of several batches. kNoValue: its number of samples.
};

/// A model. Training and evaluation run two specializations of the same graph (in evaluation dropout is the identity
/// and batch norm uses its running statistics), unless evaluation has a graph of its own.
struct Graph {
  std::vector<Value> values = {};
  std::vector<Node> nodes = {};  ///< Calls, in an order in which they can be run.
  std::vector<Weight> weights = {};
  std::vector<Hyper> hypers = {};
  std::vector<ValueId> inputs = {};
  /// Values that a run gives, in order. A model gives what its task takes; a built-in loss takes the first. A training
  /// graph with an objective that was specialized gives the loss, and its weight if there is one.
  std::vector<ValueId> outputs = {};
  std::optional<Objective> objective = {};  ///< What training minimizes; a model has none before its task adds it.
  std::int64_t fixed_batch = 0;             ///< The only N it can run with; 0: any.
  std::int64_t largest_batch = 0;           ///< The largest N it can run with; 0: no limit.
  BatchLimits limits = {};                  ///< Further limits on N.
  /// The graph that evaluation runs without changes; null: evaluation runs a specialization of this graph. It has the
  /// same weights, inputs, outputs and hypers in the same order, each with values of its own.
  std::shared_ptr<const Graph> evaluation = nullptr;

  /// A text that is equal for two graphs exactly if they can train side by side in one array: everything but `hypers`'
  /// values, `where` and stored values.
  [[nodiscard]] std::string signature() const;
  /// Number of trained parameters; a complex one counts once, of a padded weight only what `hypers` say is used.
  [[nodiscard]] std::int64_t parameter_count() const;
};

}  // namespace hfta::fusion
