#include "trials/space.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace hfta::trials;

TEST_CASE("Distributions go by W&B's names") {
  const std::vector<std::pair<DistributionKind, std::string>> cases = {
      {DistributionKind::kConstant, "constant"},
      {DistributionKind::kCategorical, "categorical"},
      {DistributionKind::kIntUniform, "int_uniform"},
      {DistributionKind::kUniform, "uniform"},
      {DistributionKind::kQUniform, "q_uniform"},
      {DistributionKind::kLogUniform, "log_uniform"},
      {DistributionKind::kQLogUniform, "q_log_uniform"},
      {DistributionKind::kLogUniformValues, "log_uniform_values"},
      {DistributionKind::kQLogUniformValues, "q_log_uniform_values"},
      {DistributionKind::kInvLogUniform, "inv_log_uniform"},
      {DistributionKind::kInvLogUniformValues, "inv_log_uniform_values"},
      {DistributionKind::kNormal, "normal"},
      {DistributionKind::kQNormal, "q_normal"},
      {DistributionKind::kLogNormal, "log_normal"},
      {DistributionKind::kQLogNormal, "q_log_normal"},
  };
  CHECK(distribution_names().size() == cases.size());
  for (const auto& [kind, name] : cases) {
    CHECK(name_of(kind) == name);
    CHECK(distribution_from(name) == kind);
  }
  for (const char* other : {"", "Uniform", "loguniform", "beta", "uniform "}) CHECK_FALSE(distribution_from(other));
}
