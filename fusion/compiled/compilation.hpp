#pragma once
/// Whether a graph can be compiled for a CPU's arrays, and what memory they would take: answered by compiling it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"
#include "fusion/ways.hpp"

namespace hfta::fusion {

/// How arrays of a graph are compiled.
struct Compilation {
  std::string why_not;                ///< Why they cannot be, naming an op and its place; "" if they can.
  std::vector<std::string> by_torch;  ///< Ops that LibTorch runs in training, none twice, for want of a compiler.
  std::int64_t encoded = 0;           ///< Values that lie encoded between forward and backward.
  std::int64_t encoded_bytes = 0;     ///< Bytes of these values before they are encoded.
};
/// Compiles the graph to see.
[[nodiscard]] Compilation compilation_of(const Graph& graph, const Recipe& recipe);

/// Why its arrays cannot be trained by a pipeline of so many stages; "" if they can. Compiles them to see.
[[nodiscard]] std::string why_not_in_stages(const Graph& graph, const Recipe& recipe, int stages);

/// Bytes that one thread, or team, works in, by element of `recompute`: the arenas of all phases. `threads`: those of
/// all teams. For a pipeline, the mean over its stages. Throws Error{kConfig} if the graph cannot be compiled.
[[nodiscard]] std::vector<std::int64_t> arena_bytes(const WayQuestion& question, int threads,
                                                    std::span<const int> recompute);

}  // namespace hfta::fusion
