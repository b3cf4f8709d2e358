#pragma once
/// Values of the forward that lie encoded until the backward reads them: those that the backward reads for the
/// gradients of layers' weights alone. An error in such a value touches these gradients and nothing else, and how much
/// is known (fusion/codec/bounds.hpp).

#include <cstddef>
#include <cstdint>
#include <functional>
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
/// Recompute of plans that encode values: results that cost no products are computed again, unless they are encoded.
inline constexpr Recompute kBesideEncoded = 1;

/// The weights whose layers may read an encoded value: of convolutions and linear layers, each read by one call. The
/// input of a batch norm is none: its error goes into the gradient that the norm passes on, and makes the gradients of
/// the layers below it wrong by several times what is wanted.
[[nodiscard]] BoundLayout bounded_layers(const Graph& graph);

/// Encodes and decodes values in a run of a plan with CompiledGraph::encoded. Refers to its arguments.
class Coding {
 public:
  /// `share`: the error that a gradient may have, as a share of its scale.
  Coding(std::span<const EncodedValue> plan, EncodedValues& values, SlotBounds& bounds, double share)
      : plan_(plan), values_(values), bounds_(bounds), share_(share) {}

  void encode(std::size_t i, const float* x, Team* team);
  /// Elements [first, first + count) of value i, which are whole pieces, to x.
  void decode(std::size_t i, std::int64_t first, std::int64_t count, float* x, Team* team) const;
  /// Memory in which the layer's backward sums up its output's gradient; nothing in steps that make no sums.
  [[nodiscard]] std::optional<SlotBounds::Sums> sums(std::size_t weight) const;

 private:
  std::span<const EncodedValue> plan_;
  EncodedValues& values_;
  SlotBounds& bounds_;
  double share_;
};

/// Reads of layers' inputs, as the ops' compilers report them.
class LayerReads {
 public:
  /// A step that reads a buffer for a layer's gradient alone.
  struct Read {
    std::size_t step = 0;  ///< Position in the schedule.
    LayerInput layer;
    /// Elements that the step reads at a time, one stretch after the other; 0: all at once.
    std::int64_t piece = 0;
    /// If there are pieces: makes the step that may replace this one if the buffer is the plan's i-th encoded value. It
    /// decodes piece by piece.
    std::function<Step(std::size_t i)> by_pieces = {};
  };
  void add(int buffer, Read read);

  struct Candidate {
    int buffer = -1;
    std::vector<Read> reads;
    [[nodiscard]] std::vector<LayerInput> layers() const;  ///< Without duplicates.
    [[nodiscard]] std::int64_t piece() const;              ///< The piece that all reads have; 0: they differ.
  };
  /// Buffers that no other step of the backward touches, of layers that read but one value each.
  [[nodiscard]] std::vector<Candidate> candidates(const Schedule& schedule) const;

 private:
  std::map<int, std::vector<Read>> reads_;  // by buffer
};

}  // namespace hfta::fusion::cpu
