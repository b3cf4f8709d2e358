// Sums over a set, from what evaluation gives batch by batch.
#include "fusion/training/evaluation_sums.hpp"

#include <cmath>

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {

TEST_CASE("a NaN loss is that of its slot alone") {
  Recipe recipe;
  EvaluationSums sums(recipe, 2);
  at::Tensor output = counted_normal({2, 4, 3}, DType::kFloat64, 3), loss = counted_normal({2, 4}, DType::kFloat64, 4);
  loss[1][0] = std::nan("");
  sums.add({output, loss, at::ones({2, 4}, at::kDouble)}, counted_labels(4, 3, 1), 4);
  CHECK(std::isfinite(sums.result()[0].at("loss")));
  CHECK(std::isnan(sums.result()[1].at("loss")));
}

}  // namespace hfta::fusion::testing
