#pragma once
/// The rule of each of Rows: whether a call keeps samples apart, and where they lie in its results. Internal to
/// passes/rows.cpp.

#include <optional>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/op_rows.hpp"
#include "fusion/passes/rows.hpp"

namespace hfta::fusion {

/// A tensor that a call reads.
struct RowsInput {
  const Value* value = nullptr;
  DependsOn depends_on = DependsOn::kMore;
  SampleDim at = {};  ///< The dimension of samples or places.
  [[nodiscard]] std::size_t rank() const { return value->shape.size(); }
  [[nodiscard]] bool of_sample() const { return depends_on == DependsOn::kSample; }
  [[nodiscard]] bool of_nothing() const { return depends_on == DependsOn::kNothing; }
  [[nodiscard]] SampleDim samples() const { return at; }
  /// Dimensions from the samples' one to the last: 1 is the last.
  [[nodiscard]] std::size_t from_right() const { return rank() - at.dim; }
  /// Whether samples lie alike in both, dimensions being counted from the last.
  [[nodiscard]] bool is_aligned_with(const RowsInput& other) const {
    return from_right() == other.from_right() && at.parts == other.at.parts && at.outer == other.at.outer;
  }
};

/// A call whose tensors depend on samples, on their places or on nothing, and at least one on samples or places.
class RowsCall {
 public:
  RowsCall(const Graph& graph, const Node& node, const std::vector<DependsOn>& depends_on,
           const std::vector<SampleDim>& at)
      : graph_(graph), node_(node), depends_on_(depends_on), at_(at) {}

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] RowsInput input(ValueId id) const {
    const auto i = static_cast<std::size_t>(id);
    return {&graph_.values[i], depends_on_[i], at_[i]};
  }
  /// The tensor that is the argument of that name; nullopt: there is none.
  [[nodiscard]] std::optional<RowsInput> tensor(std::string_view name) const;
  /// All tensors that it reads, in order.
  [[nodiscard]] std::vector<RowsInput> tensors() const;
  [[nodiscard]] const Value& output(std::size_t o) const {
    return graph_.values[static_cast<std::size_t>(node_.outputs[o])];
  }
  /// The integers of the argument of that name, one or several; nullopt: none are there, or they are not literals.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view name) const;

 private:
  const Graph& graph_;
  const Node& node_;
  const std::vector<DependsOn>& depends_on_;
  const std::vector<SampleDim>& at_;
};

/// Finds where samples lie in output `o`, if each one's part is a function of that sample alone (if the call reads
/// places: if the output is such places again). nullopt: that cannot be proved.
using RowRule = std::optional<SampleDim> (*)(const RowsCall& call, std::size_t o);

// The rules by the file that has them: elements and shapes; products, layers and lookups.
[[nodiscard]] RowRule shape_row_rule(Rows rows);
[[nodiscard]] RowRule layer_row_rule(Rows rows);

}  // namespace hfta::fusion
