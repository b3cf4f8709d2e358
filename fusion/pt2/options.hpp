#pragma once
/// Changes that an import may make to a translated graph.

#include <map>
#include <string>
#include <vector>

#include "fusion/exported.hpp"

namespace hfta::fusion::pt2 {

/// Sets `to` wherever the model has its own float type `from`: weights, values and arguments.
void set_dtype(Graph& graph, DType from, DType to);

/// Frozen matrices that the file has in 16 bits keep that type, and are widened where a product reads them, to the same
/// numbers: the base of adapters is then held in half the memory. Those alone that products and look-ups read. Both
/// graphs have the same weights; `evaluation` may be null.
void keep_narrow(Graph& graph, Graph* evaluation);

/// Parameters that match are not trained; `names` are those of all parameters, used by the graph or not. `where` begins
/// messages.
void freeze(Graph& graph, const std::vector<std::string>& patterns, const std::vector<std::string>& names,
            const std::string& where);

/// Literals that match become hypers, in either graph. `evaluation` may be null.
void bind(Graph& graph, Graph* evaluation, const std::vector<Binding>& bindings);

/// Sets what slots start from, by options.fresh and options.jitter; `classes` are those of the modules. Throws
/// Error{kConfig} naming a parameter that cannot be drawn anew.
void set_start(Graph& graph, const ImportOptions& options, const std::map<std::string, std::string>& classes);

}  // namespace hfta::fusion::pt2
