#pragma once
/// Translates the nodes of an exported graph to ATen calls.

#include <map>
#include <string>
#include <vector>

#include "fusion/pt2/batch.hpp"
#include "fusion/pt2/parameters.hpp"

namespace hfta::fusion::pt2 {

struct Translation {
  Graph graph;  ///< Float types as exported; `output` is the first.
  std::vector<ExportedTensor> outputs;
  std::vector<ValueId> output_values;          ///< The values of `outputs`.
  std::map<std::string, std::string> classes;  ///< Classes of modules by path: "torch.nn.modules.linear.Linear".
  std::vector<std::string> functions;          ///< Distinct NodeRecord::function, in their order.
};

/// Throws Error{kConfig}: ops that a Graph has no word for, control flow, sizes that depend on data; each with the line
/// of the user's source.
[[nodiscard]] Translation translate(const Reader& program, const Signature& signature, const Parameters& parameters,
                                    const Batch& batch);

}  // namespace hfta::fusion::pt2
