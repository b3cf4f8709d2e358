#pragma once
/// Values of the forward that lie encoded until the backward reads them: those that the backward reads for the
/// gradients of layers' weights alone. An error in such a value touches these gradients and nothing else, and how much
/// is known (fusion/codec/bounds.hpp).

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fusion/codec/encoded_values.hpp"
#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/recompute.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// Values of fewer elements are kept as they are: they are not worth the bytes around them.
inline constexpr std::int64_t kLeastEncoded = 1024;
/// What is computed again beside encoded values (Recompute): what costs no products, where nothing of it was encoded.
inline constexpr Recompute kBesideEncoded = 1;

/// The weights whose layers may read an encoded value: of convolutions and linear layers, each read by one call. The
/// input of a batch norm is none: its error goes into the gradient that the norm passes on, and makes the gradients of
/// the layers below it wrong by several times what is wanted.
[[nodiscard]] BoundLayout bounded_layers(const Graph& graph);

/// What a run of a plan with CompiledGraph::encoded works with. Refers to its arguments.
class Coding {
 public:
  /// `share`: of a gradient's scale that its error may have.
  Coding(std::span<const EncodedValue> plan, EncodedValues& values, SlotBounds& bounds, double share)
      : plan_(plan), values_(values), bounds_(bounds), share_(share) {}

  void encode(std::size_t i, const float* x, Team* team);
  void decode(std::size_t i, float* x, Team* team) const;
  /// Where the layer's backward sums up its output's gradient; nothing in steps that do not.
  [[nodiscard]] std::optional<SlotBounds::Sums> sums(std::size_t weight) const;

 private:
  std::span<const EncodedValue> plan_;
  EncodedValues& values_;
  SlotBounds& bounds_;
  double share_;
};

/// What the ops' compilers say of reading layers' inputs; encodings() are of those that may be encoded.
class LayerReads {
 public:
  /// The step at that position of the schedule reads the buffer for that layer's gradient alone.
  void add(int buffer, std::size_t step, const LayerInput& layer);

  struct Candidate {
    int buffer = -1;
    std::vector<LayerInput> layers;
  };
  /// Buffers that no other step of the backward touches, of layers that read but one value each.
  [[nodiscard]] std::vector<Candidate> candidates(const Schedule& schedule) const;

 private:
  struct Reads {
    std::vector<std::size_t> steps;
    std::vector<LayerInput> layers;
  };
  std::map<int, Reads> reads_;  // by buffer
};

}  // namespace hfta::fusion::cpu
