#pragma once
/// Whether a graph holds together, before anything runs it. Without torch.
///
/// Three rooms look at a graph from a stranger's file, each at what it can know. Here: order, names, kinds of values
/// and what weights are said to be, which need no op's meaning. The CPU compiler checks ranks, sizes and dtypes of
/// every op that it knows as it compiles it (cpu/compile.hpp), since it may be used alone. LibTorch checks them for
/// every other way to run, and its objections are told with the node's place (array/program.hpp). Sizes that the file
/// declares of values in between are a prediction, of memory above all: nobody relies on them for access.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig} naming the node or weight, what was found and what was wanted: a value that is used before it
/// is made, made twice or not there at all; a number where a tensor is wanted, or the reverse; a weight whose stored
/// values have another shape than the graph gives it, or other bytes.
void verify(const Graph& graph);

}  // namespace hfta::fusion
