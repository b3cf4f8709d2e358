#include "trials/space.hpp"

#include <algorithm>

namespace hfta::trials {

const std::vector<std::string>& distribution_names() {
  // In the order of DistributionKind.
  static const std::vector<std::string> names = {"constant",
                                                 "categorical",
                                                 "int_uniform",
                                                 "uniform",
                                                 "q_uniform",
                                                 "log_uniform",
                                                 "q_log_uniform",
                                                 "log_uniform_values",
                                                 "q_log_uniform_values",
                                                 "inv_log_uniform",
                                                 "inv_log_uniform_values",
                                                 "normal",
                                                 "q_normal",
                                                 "log_normal",
                                                 "q_log_normal"};
  return names;
}

const char* name_of(DistributionKind kind) { return distribution_names().at(static_cast<std::size_t>(kind)).c_str(); }

std::optional<DistributionKind> distribution_from(const std::string& name) {
  const std::vector<std::string>& names = distribution_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<DistributionKind>(found - names.begin());
}

}  // namespace hfta::trials
