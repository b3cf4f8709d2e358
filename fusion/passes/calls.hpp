#pragma once
/// Tools for passes: calls of ATen's ops with complete arguments, and rewriting a graph with some values replaced.

#include <string_view>
#include <vector>

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// Whether the node calls the op of that name, of whatever overload: is_call_of(node, "add") is true of
/// "aten::add_.Tensor".
[[nodiscard]] bool is_call_of(const Node& node, std::string_view name);
/// Whether the call shortens rows of a table to a length before they are looked up: torch.nn.Embedding(max_norm). It
/// does so in evaluation, too, and twice is as good as once.
[[nodiscard]] inline bool shortens_rows(const Node& node) { return is_call_of(node, "embedding_renorm"); }

/// Calls in the place of `model`: with its path, source and gradients, and its outputs until the caller sets others.
namespace call {

[[nodiscard]] Node add(const Node& model, const Arg& a, const Arg& b);
[[nodiscard]] Node cat(const Node& model, std::vector<ValueId> parts, std::int64_t dim);
[[nodiscard]] Node cloned(const Node& model, const Arg& tensor);
[[nodiscard]] Node copied_into(const Node& model, const Arg& self, const Arg& source);
[[nodiscard]] Node filled_in_place(const Node& model, const Arg& self, const Arg& number);
/// A tensor of the type and device that `model` names.
[[nodiscard]] Node full(const Node& model, const Arg& size, const Arg& number);
[[nodiscard]] Node full_like(const Node& model, const Arg& tensor, const Arg& number);
/// self += weight * (end - self)
[[nodiscard]] Node lerp_in_place(const Node& model, const Arg& self, const Arg& end, const Arg& weight);
/// [begin, end) of a dimension.
[[nodiscard]] Node slice(const Node& model, const Arg& tensor, std::int64_t dim, std::int64_t begin, std::int64_t end);
[[nodiscard]] Node to_dtype(const Node& model, const Arg& tensor, DType dtype);
/// A batch norm by the batch's statistics that normalises as `norm` does, and updates no running ones.
[[nodiscard]] Node without_running_statistics(Node norm);
/// Unbiased variance and mean over `dims`: two outputs.
[[nodiscard]] Node var_mean(const Node& model, const Arg& tensor, std::vector<std::int64_t> dims);

}  // namespace call

/// Rewrites the calls of a reading in order, replacing the outputs of removed calls by other values.
class Substitution {
 public:
  explicit Substitution(SpecializedGraph reading);

  [[nodiscard]] std::size_t count() const { return nodes_.size(); }
  [[nodiscard]] const Graph& graph() const { return out_.graph; }
  /// Call i, reading what its inputs stand for.
  [[nodiscard]] Node take(std::size_t i);
  /// `node` in the place of call i.
  void add(Node node, std::size_t i);
  /// Removes a call: calls that read its outputs read `value` instead.
  void stand_for(const Node& node, const Arg& value);
  [[nodiscard]] SpecializedGraph result() &&;

 private:
  SpecializedGraph out_;
  std::vector<Node> nodes_;
  std::vector<int> index_;
  std::vector<ValueId> stands_for_;
};

}  // namespace hfta::fusion
