#pragma once
/// Tools that layer kinds are written with: rules for their arguments, and the builder that one layer's emit function
/// adds its calls and weights through. Internal to fusion/graph.

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fusion/layers.hpp"

namespace hfta::fusion {

/// Most elements of a tensor, and of all weights together; keeps absurd sizes from overflowing.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
/// Most of a kernel, stride, padding or dilation.
inline constexpr std::int64_t kMostWindow = std::numeric_limits<std::int32_t>::max();

enum class ArgType {
  kInt,
  kInts,  ///< `count` integers, one meaning all of them; count 0: any number of them
  kReal,
  kFlag,
  kWord,
  kName,  ///< An earlier output. A kind has at most one argument of this type, its first.
};

/// One argument of a layer kind: how it is checked and what it is when left out.
struct ArgRule {
  std::string name = {};
  ArgType type = ArgType::kInt;
  std::optional<LayerArg> fallback = {};
  bool required = true;  ///< Whether it must be given, if it has no fallback.
  int count = 1;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> words = {};  ///< kWord: the choices; kInts: words that are taken instead.
  bool fusible = false;
};

/// A layer's arguments after binding: every one given or with a fallback, of its rule's type and within its range.
using BoundArgs = std::map<std::string, LayerArg>;

class LayerBuilder;

/// A layer kind: its arguments in positional order and the function that adds it to a graph.
struct LayerKind {
  std::string name;
  std::vector<ArgRule> args;
  std::function<void(LayerBuilder&)> emit;
};

/// Earlier outputs by name: "input", "layers.3", given names.
using NamedOutputs = std::map<std::string, ValueId>;

/// One layer on its way into a graph. Its emit function asks for arguments, declares weights, adds calls; the last
/// call's first output becomes the layer's output.
class LayerBuilder {
 public:
  LayerBuilder(Graph& graph, const LayerSpec& spec, const LayerKind& kind, std::size_t position, ValueId input,
               const NamedOutputs& outputs, DType dtype);

  /// Throws Error{kConfig}: "where: layers.2 (linear): " + message.
  [[noreturn]] void fail(const std::string& message) const;
  /// Throws "found input [N, 128], wanted " + wanted.
  [[noreturn]] void wrong_input(const std::string& wanted) const;

  [[nodiscard]] bool has(const std::string& arg) const { return args_.contains(arg); }
  [[nodiscard]] std::int64_t integer(const std::string& arg) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& arg) const;
  [[nodiscard]] double real(const std::string& arg) const;
  [[nodiscard]] bool flag(const std::string& arg) const;
  /// The word that the argument is; nullopt if it is not a word.
  [[nodiscard]] std::optional<std::string> word(const std::string& arg) const;
  /// A dimension argument as 1 .. rank-1 (negative ones count from the end); the batch dimension is refused.
  [[nodiscard]] std::size_t dimension(const std::string& arg) const;
  /// The earlier outputs that the kName argument names.
  [[nodiscard]] const std::vector<std::pair<std::string, ValueId>>& joined() const { return joined_; }

  [[nodiscard]] ValueId value() const { return current_; }
  [[nodiscard]] const Shape& shape() const { return shape_of(current_); }
  [[nodiscard]] const Shape& shape_of(ValueId value) const;

  /// A tensor of this layer, named "<path>.<name>". `trained` false: a buffer.
  ValueId weight(const std::string& name, const Shape& shape, Init init, bool trained = true);
  /// weight(), started as the op's module starts it. `weight_shape`: shape of the module's "weight".
  ValueId parameter(const char* op, const std::string& name, const Shape& shape, const Shape& weight_shape,
                    bool trained = true);
  /// A literal that may differ between slots.
  HyperRef hyper(const std::string& name, double value);
  /// Appends op(current, args...), whose output of `shape` becomes current. `suffix` tells a layer's further calls
  /// apart. `indices`: the call has a second output, which nobody uses.
  void call(const std::string& op, std::vector<Arg> args, const Shape& shape, const std::string& suffix = "",
            bool indices = false);
  /// Appends a call like call(), with all arguments given.
  void call_with(const std::string& op, std::vector<Arg> args, const Shape& shape, const std::string& suffix = "",
                 bool indices = false);

 private:
  void bind();
  void bind_positional();
  void bind_named();
  void take(const ArgRule& rule, const LayerArg& arg);
  ValueId new_value(const std::string& name, const Shape& shape, DType dtype);

  Graph& graph_;
  const LayerSpec& spec_;
  const LayerKind& kind_;
  const NamedOutputs& outputs_;
  std::string label_, path_;
  DType dtype_;
  ValueId current_;
  BoundArgs args_;
  std::vector<std::pair<std::string, ValueId>> joined_;
};

/// `arg` as `rule` wants it (whole numbers as integers, one integer as a list), or nullopt.
[[nodiscard]] std::optional<LayerArg> coerce(const ArgRule& rule, const LayerArg& arg);
/// The rule of a kernel size, stride, padding or dilation along `dims` dimensions; required without `fallback`.
[[nodiscard]] ArgRule window_rule(const std::string& name, int dims, double least,
                                  std::optional<LayerArg> fallback = std::nullopt);
/// "an integer of at least 1".
[[nodiscard]] std::string wanted_text(const ArgRule& rule);
/// The argument as a user would write it.
[[nodiscard]] std::string to_text(const LayerArg& arg);
/// Elements of one sample of `shape` ([N, ...]) or of a whole tensor; more than kMostElements: nullopt.
[[nodiscard]] std::optional<std::int64_t> element_count(const Shape& shape);

// The families of kinds; the table in layers.cpp joins them.
[[nodiscard]] std::vector<LayerKind> linear_and_conv_kinds();
[[nodiscard]] std::vector<LayerKind> norm_kinds();
[[nodiscard]] std::vector<LayerKind> pool_kinds();
[[nodiscard]] std::vector<LayerKind> activation_kinds();
[[nodiscard]] std::vector<LayerKind> shape_kinds();

}  // namespace hfta::fusion
