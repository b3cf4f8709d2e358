#pragma once
/// Parameters, buffers and constants: the graph's weights, and the model's state dict.

#include <map>
#include <string>
#include <vector>

#include "fusion/exported.hpp"
#include "fusion/pt2/signature.hpp"
#include "fusion/pt2/weights.hpp"

namespace hfta::fusion::pt2 {

using StoredWeights = std::map<std::string, StoredWeight>;

struct Parameters {
  std::vector<Weight> weights;                        ///< In the model's order; `value` is kNoValue.
  std::map<std::string, std::size_t> by_placeholder;  ///< Index into `weights`; tied names lead to one.
  std::map<std::string, std::size_t> buffers;         ///< Index into `weights`, by a buffer's name.
  std::vector<std::string> names;                     ///< Names of all parameters, used or not, tied ones too.
  DType dtype = DType::kFloat32;                      ///< The float type that the model's parameters have.
  std::vector<StateEntry> state;
};

/// `weights` hold parameters and buffers of the state dict, `constants` the rest. `place` begins messages.
[[nodiscard]] Parameters parameters_from(const Signature& signature, const StoredWeights& weights,
                                         const StoredWeights& constants, const std::string& place);

}  // namespace hfta::fusion::pt2
