#pragma once
/// A second export of a module, put beside the first as its graph of evaluation.

#include <string>

#include "fusion/pt2/parameters.hpp"

namespace hfta::fusion::pt2 {

/// An export as attach_evaluation takes it.
struct Side {
  const std::string& file;  ///< Its name, for messages.
  const Parameters& parameters;
};

/// Makes `evaluation` the one of `graph`: parameters and buffers become those of `graph` by name, those that only
/// evaluation reads and its constants join graph.weights, and inputs are brought into `graph`'s order. `where` begins
/// messages. Throws Error{kConfig}: names, shapes or types that differ.
void attach_evaluation(Graph& graph, const Side& training, Graph evaluation, const Side& evaluated,
                       const std::string& where);

}  // namespace hfta::fusion::pt2
