#pragma once
/// How an array runs: the choices that lowering makes, as data that can be measured, remembered and recorded.

#include <map>
#include <string>

namespace hfta::fusion {

/// One way to run a graph. Results of two lowerings are equal up to rounding; results of one lowering, bit for bit.
struct Lowering {
  /// The executor: the name of a row of fusion/executors. "eager": op by op through LibTorch, or the same from captured
  /// steps where the device has these; "compiled": each slot by itself, by kernels compiled for the graph, chunk
  /// 1, a CPU only.
  std::string executor = "eager";
  /// Slots that run through the ops together; 1 runs each slot by itself, depth first. The array's slots are dealt to
  /// worker threads chunk by chunk.
  int chunk = 1;
  bool channels_last = false;  ///< Layout of images where chunk is 1.
  std::map<std::string, std::string> families =
      {};                      ///< Op family -> candidate ("conv" -> "grouped"); absent: the first.
  int workers = 1;             ///< Threads, or teams of threads, that run chunks.
  int threads_per_worker = 1;  ///< Threads inside an op; of "compiled", of each team.
  /// How much "compiled" recomputes for the backward, instead of keeping it (fusion/cpu/recompute.hpp): 0 nothing, and
  /// more with each step. Neither it nor the split of threads changes a bit of "compiled".
  int recompute = 0;

  bool operator==(const Lowering&) const = default;
  /// "chunk 8, conv unfolded, linear batched, 2 x 1 threads"; "compiled, recompute 2, 1 x 2 threads".
  [[nodiscard]] std::string to_text() const;
};

}  // namespace hfta::fusion
