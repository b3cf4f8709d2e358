#pragma once
/// The parts of a graph that a library runs (library.hpp): which calls they are, and how they are compiled.

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/builder.hpp"
#include "fusion/cpu/library.hpp"

namespace hfta::fusion::cpu {

/// Knows which calls of a graph have a compiler here, which are known beforehand, and which a library runs. It learns:
/// whether a call can be compiled for its arguments shows only when that is tried, and then compiling begins anew.
class Parts {
 public:
  /// `library`: null where there is none. Both must outlive it.
  Parts(const Graph& graph, const Library* library);

  /// The call cannot be compiled, or not computed beforehand: from now on the library runs it, together with whatever
  /// it writes in place. False if the library cannot help.
  [[nodiscard]] bool hand_over(std::size_t node);

  /// Called before compiling begins, also when it begins anew.
  void begin(Builder& b);
  /// Whether the call is left to this class, which is told when compiling comes to it, in the graph's order.
  [[nodiscard]] bool takes(std::size_t node) const { return known_[node] || by_library_.contains(node); }
  /// Emits the part that the node is the last of, or computes the node if it is known beforehand. Throws Error{kConfig}
  /// if the library cannot run it.
  void compile(Builder& b, std::size_t node);
  /// Binds what the node reads of known values, as they are by now.
  void bind_known(Builder& b, std::size_t node);
  /// Binds those of the graph's outputs that are known values.
  void bind_known_outputs(Builder& b);

 private:
  void classify();
  /// The calls that one library has to run if it runs the node: those that have to do with what it writes in place.
  [[nodiscard]] NodeRange range_of(std::size_t node);
  void give(const NodeRange& range);
  void find_runs();
  /// Whether calls before the run belong together with some of it.
  [[nodiscard]] bool is_cut(const std::vector<std::size_t>& run);
  void bind_known_value(Builder& b, ValueId id);
  void emit(Builder& b, const std::vector<std::size_t>& nodes);
  [[nodiscard]] std::vector<ValueId> read_by(const std::vector<std::size_t>& nodes) const;
  [[nodiscard]] std::vector<ValueId> given_by(const std::vector<std::size_t>& nodes) const;

  const Graph& graph_;
  const Library* library_;
  std::set<std::size_t> by_library_, not_known_;
  std::vector<ValueId> memory_;                           ///< By value: memory_of().
  std::map<ValueId, NodeRange> ranges_;                   ///< By memory: what range_of() found,
  std::set<std::size_t> unseen_;                          ///< and the writes that nobody sees.
  std::vector<bool> known_;                               ///< By node.
  std::map<std::size_t, std::vector<std::size_t>> runs_;  ///< By last node.
  std::map<std::vector<std::size_t>, std::shared_ptr<const Part>> made_;
  std::unique_ptr<KnownValues> values_;
  std::set<ValueId> computed_, given_;  ///< By values_; weights that it was given.
};

}  // namespace hfta::fusion::cpu
