#pragma once
/// Whether a graph is valid, before anything runs it. Without torch.
///
/// Three places check a graph from an untrusted file, each as far as it has the information. This one checks order,
/// names, kinds of values and the declared types of weights, which do not depend on the meaning of ops. The CPU
/// compiler checks ranks, sizes and dtypes of every op that it compiles (cpu/compile.hpp), since it may be used alone.
/// LibTorch checks them for every other way to run, and its errors are reported with the node's place
/// (eager/program.hpp). Sizes that the file declares for intermediate values are only predictions, mainly of memory: no
/// memory access relies on them.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig} naming the node or weight, what was found and what was wanted: a value that is used before it
/// is made, made twice or not there at all; a number where a tensor is wanted, or the reverse; a weight whose stored
/// values have another shape than the graph gives it, or other bytes.
void verify(const Graph& graph);

}  // namespace hfta::fusion
