#pragma once
/// Values of the forward that lie encoded until the backward reads them: those that the backward reads for the
/// gradients of layers' weights alone, and inputs of batch norms. An error in such a value touches these gradients, and
/// those of the layers below the norm; how much is known (fusion/codec/bounds.hpp).

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
/// Bits of an element that are foreseen for values that lie encoded, of norms' inputs and of layers': they depend on
/// the data. What is more lies in memory that no plan knows of. Measured: docs/memory.md.
inline constexpr double kBitsOfNormInput = 8.75, kBitsOfLayerInput = 5.25;
/// Recompute of plans that encode values: results that cost no products are computed again, unless they are encoded.
inline constexpr Recompute kBesideEncoded = 1;

/// The weights whose layers may read an encoded value: of convolutions, linear layers and batch norms, each read by one
/// call.
[[nodiscard]] BoundLayout bounded_layers(const Graph& graph);

/// Encodes and decodes values in a run of a plan with CompiledGraph::encoded. Refers to its arguments.
class Coding {
 public:
  /// `share`: the error that a gradient may have, as a share of its scale.
  Coding(std::span<const EncodedValue> plan, EncodedValues& values, SlotBounds& bounds, double share)
      : plan_(plan), values_(values), bounds_(bounds), share_(share) {}

  /// Encodes value i, all of which lies at x.
  void encode(const Run& run, std::size_t i, const float* x);
  /// Elements [first, first + count) of value i, which are whole pieces, to x. `team`: who shares the work; null: the
  /// caller alone.
  void decode(const Run& run, std::size_t i, std::int64_t first, std::int64_t count, float* x, Team* team) const;
  /// The slot's bounds in a step that measures; null in others.
  [[nodiscard]] const SlotBounds* measured() const { return bounds_.measures() ? &bounds_ : nullptr; }

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
    std::optional<Standard> standard = {};  ///< If the layer is a batch norm.
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
    [[nodiscard]] const std::optional<Standard>& standard() const { return reads.front().standard; }
  };
  /// Buffers that no other step of the backward touches, of layers that read but one value each, and each either of
  /// batch norms alone or of none.
  [[nodiscard]] std::vector<Candidate> candidates(const Schedule& schedule) const;

 private:
  std::map<int, std::vector<Read>> reads_;  // by buffer
};

}  // namespace hfta::fusion::cpu
