#pragma once
/// Values of the forward that are not kept for the backward but computed once more, to the same bits.
///
/// A training step needs most memory where the forward ends: all that the backward will read is there. A value that can
/// be computed again gives its memory away after its last reader of the forward, and is computed again, once, right
/// before its first reader of the backward, from values that are kept or computed again themselves. Which ones: first
/// those that cost one pass over memory (the outputs of normalisations, pools, activations), of which every convolution
/// with batch norm has one; then the outputs of matrix products and convolutions, in stretches (T. Chen et al.,
/// Training Deep Nets with Sublinear Memory Cost, 2016, section 3).
///
/// A value may also be encoded (encode.hpp) instead, and decoded as another is computed again. It does not come back to
/// the same bits, so that nothing is computed again from it.

#include <cstddef>
#include <span>
#include <vector>

#include "fusion/cpu/compiled_graph.hpp"

namespace hfta::fusion::cpu {

/// A kernel in its place, and the buffers that it reads or writes.
struct Step {
  Kernel kernel;
  CompiledGraph::KernelInfo info;
  std::vector<int> buffers;
  /// The kernel writes `to` as well where `from` lies, if nobody reads that afterwards. -1: no such pair.
  struct InPlace {
    int from = -1, to = -1;
  };
  InPlace in_place = {};
};

/// Cost of computing a value once more.
enum class RecomputeCost {
  kWidening,  ///< One pass over a weight that is held in a narrower type: next to nothing beside the product that reads
              ///< it.
  kPass,      ///< One pass over memory.
  kProduct,   ///< A matrix product, or a convolution.
};

/// How a buffer that one kernel of the forward writes whole is computed once more.
struct Recomputation {
  int buffer = -1;
  Step step;  ///< Writes the same bits as that kernel, and nothing else that anybody reads.
  RecomputeCost cost = RecomputeCost::kPass;
};

/// How a buffer is encoded at the end of the forward's part of its life, and decoded.
struct Encoding {
  int buffer = -1;
  Step encode, decode;
  /// A step that replaces one of the backward that reads the buffer, and decodes piece by piece. None: `decode` brings
  /// the value back.
  struct Instead {
    std::size_t position = 0;
    Step step;
  };
  std::vector<Instead> instead;
  /// The value stays as it is where another one can be computed again from it that would have to be kept otherwise.
  bool yields = false;
};

/// A training step's kernels, the backward's from `backward` on.
struct Schedule {
  std::vector<Step> steps;
  std::size_t backward = 0;
};

/// Amount computed again. 0: widened weights alone. 1: what costs no matrix products. k >= 2: their outputs, too. A
/// value may need others to be computed again before it, but never a row of more than k (of 2, where k is 1): they are
/// all there at once.
using Recompute = int;

/// The schedule with the kernels put in that compute again.
struct Recomputing {
  Schedule schedule;
  /// By buffer: whether its memory is free from its last reader of the forward until it is computed again, or decoded.
  std::vector<bool> given_away;
  std::vector<bool> encoded;  ///< By buffer.
  /// The step that brings back a buffer whose memory was given away.
  struct Brought {
    std::size_t step = 0;
    int buffer = -1;
  };
  std::vector<Brought> brought;
};
/// `ways`: in the order of the forward. `encodings`: of values that are encoded if they are not computed again.
/// `pinned`, by buffer: whether its memory is no other's at any time. A value is given away only if nothing is kept for
/// longer than otherwise to compute it again.
[[nodiscard]] Recomputing recomputing(const Schedule& schedule, std::span<const Recomputation> ways,
                                      std::span<const Encoding> encodings, const std::vector<bool>& pinned,
                                      Recompute recompute);

}  // namespace hfta::fusion::cpu
