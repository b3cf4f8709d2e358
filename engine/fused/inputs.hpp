#pragma once
/// Finds the array of the data that each input of an exported model takes.

#include <string>
#include <vector>

#include "engine/config.hpp"
#include "fusion/graph.hpp"

namespace hfta::engine {

/// data.x in the order of the graph's inputs. Arrays whose names are those of the inputs, all of them, go by name; else
/// they stand in the inputs' order. Throws Error{kConfig} with the place of `data` where an array stands for one input
/// and has the name of another.
[[nodiscard]] std::vector<std::string> in_input_order(const TaskSpec& spec, const fusion::Graph& graph);

/// "ids for 'input_ids', mask for 'attention_mask'" where arrays go by their order and another would fit as well:
/// inputs of one shape and type. Else "".
[[nodiscard]] std::string told_by_order(const TaskSpec& spec, const fusion::Graph& graph);

}  // namespace hfta::engine
