#pragma once
/// What an import may change about a translated graph.

#include <map>
#include <string>
#include <vector>

#include "fusion/exported.hpp"

namespace hfta::fusion::pt2 {

/// `to` wherever the model has its own float type `from`: weights, values and arguments.
void set_dtype(Graph& graph, DType from, DType to);

/// Parameters that match are not trained; `names` are those of all parameters, used by the graph or not. `where` begins
/// messages.
void freeze(Graph& graph, const std::vector<std::string>& patterns, const std::vector<std::string>& names,
            const std::string& where);

/// Literals that match become hypers.
void bind(Graph& graph, const std::vector<Binding>& bindings);

/// Trained parameters, and the statistics of norms, start as PyTorch's layers do; `classes` are those of the modules.
/// What belongs to no layer of torch.nn keeps its stored values.
void start_fresh(Graph& graph, const std::map<std::string, std::string>& classes);

}  // namespace hfta::fusion::pt2
