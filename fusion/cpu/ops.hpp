#pragma once
/// The ops that can be compiled: one function each, which emits kernels into a Builder.

#include <optional>
#include <string>
#include <vector>

#include "fusion/cpu/builder.hpp"
#include "fusion/graph/arguments.hpp"

namespace hfta::fusion::cpu {

/// A call that cannot be compiled here. Kind kConfig.
class CallError : public Error {
 public:
  CallError(std::size_t node, const std::string& what) : Error(ErrorKind::kConfig, what), node_(node) {}
  [[nodiscard]] std::size_t node() const { return node_; }  ///< Position in the graph that was compiled.

 private:
  std::size_t node_;
};

/// A node while it is compiled: its arguments, which are complete and stand as the op's schema has them.
class LoweringContext {
 public:
  LoweringContext(Builder& builder, std::size_t node) : b(builder), node_(node), call_(builder.graph().nodes[node]) {}

  Builder& b;

  [[nodiscard]] std::size_t position() const { return node_; }
  [[nodiscard]] const Node& node() const { return call_; }
  /// Argument i if it is of this kind, null if it is of another. Throws ArgumentError if the call has fewer arguments;
  /// so do all that follow.
  template <typename T>
  [[nodiscard]] const T* argument(std::size_t i) const {
    return std::get_if<T>(&argument_at(call_, i));
  }
  [[nodiscard]] bool is_none(std::size_t i) const { return argument<std::monostate>(i) != nullptr; }
  /// Argument i, a tensor. Fails for None, and for a number that stands for a tensor.
  [[nodiscard]] Tensor tensor(std::size_t i) const;
  /// tensor(i), or undefined if the argument is None.
  [[nodiscard]] Tensor tensor_or_none(std::size_t i) const { return is_none(i) ? Tensor{} : tensor(i); }
  [[nodiscard]] std::vector<Tensor> tensors(std::size_t i) const;
  /// tensor(i), which must be of the model's floating-point type.
  [[nodiscard]] Tensor floats(std::size_t i) const;
  /// tensor_or_none(i), which must be of that type and of just these sizes.
  [[nodiscard]] Tensor floats_or_none(std::size_t i, const Dims& sizes) const;
  /// Whether argument i is a number rather than a tensor.
  [[nodiscard]] bool is_number(std::size_t i) const;
  [[nodiscard]] double number(std::size_t i) const;
  /// Argument i exactly as it was written or computed, never by way of a double. Fails for fractions.
  [[nodiscard]] std::int64_t integer(std::size_t i) const;
  /// Argument i as an element of a tensor.
  [[nodiscard]] Number literal(std::size_t i) const;
  [[nodiscard]] bool flag(std::size_t i) const;
  [[nodiscard]] Dims ints(std::size_t i) const;
  /// Position in Graph::hypers if argument i is a number that may differ between slots.
  [[nodiscard]] std::optional<int> hyper(std::size_t i) const;
  /// A number, or the slot's own one: a function of the run.
  [[nodiscard]] std::function<double(const Run&)> slot_number(std::size_t i) const;

  [[nodiscard]] ValueId output(std::size_t o = 0) const { return output_at(call_, o); }
  void bind(Tensor tensor, std::size_t o = 0) const { b.bind(output(o), std::move(tensor)); }
  /// Throws CallError: this cannot be compiled.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::size_t node_;
  const Node& call_;
};

using Compile = void (*)(LoweringContext&);

/// The op's compiler; nullptr if it has none.
[[nodiscard]] Compile find_compiler(const std::string& op);
/// Whether the node's op has a compiler that takes its types of elements.
[[nodiscard]] bool has_compiler(const Graph& graph, const Node& node);
/// Every op that has a compiler.
[[nodiscard]] std::vector<std::string> compiled_ops();

/// Finds the graph's rotary position embeddings, so that their sums compute them whole. Called before any compiler.
void fuse_rotations(Builder& b);

struct NamedCompiler {
  std::string op;
  Compile compile;
};
[[nodiscard]] std::vector<NamedCompiler> linear_ops();
[[nodiscard]] std::vector<NamedCompiler> pointwise_ops();
[[nodiscard]] std::vector<NamedCompiler> shape_ops();   ///< Views.
[[nodiscard]] std::vector<NamedCompiler> select_ops();  ///< Views.
[[nodiscard]] std::vector<NamedCompiler> conv_ops();
[[nodiscard]] std::vector<NamedCompiler> pool_ops();
[[nodiscard]] std::vector<NamedCompiler> batch_norm_ops();
[[nodiscard]] std::vector<NamedCompiler> join_ops();
[[nodiscard]] std::vector<NamedCompiler> norm_ops();
[[nodiscard]] std::vector<NamedCompiler> embedding_ops();
[[nodiscard]] std::vector<NamedCompiler> softmax_ops();
[[nodiscard]] std::vector<NamedCompiler> matmul_ops();
[[nodiscard]] std::vector<NamedCompiler> attention_ops();
[[nodiscard]] std::vector<NamedCompiler> reduce_ops();
[[nodiscard]] std::vector<NamedCompiler> cumsum_ops();
[[nodiscard]] std::vector<NamedCompiler> choose_ops();
[[nodiscard]] std::vector<NamedCompiler> recurrent_ops();
[[nodiscard]] std::vector<NamedCompiler> constant_ops();
[[nodiscard]] std::vector<NamedCompiler> loss_ops();

}  // namespace hfta::fusion::cpu
