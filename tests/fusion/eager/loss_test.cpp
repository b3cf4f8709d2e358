// Losses of slots side by side, as a graph's calls, against the plain op on each slot alone; and the metrics of a set.
#include <cmath>

#include "fusion/training/evaluation_sums.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {

TEST_CASE("metrics over several batches are those of the whole set") {
  Recipe recipe;
  recipe.loss = Loss::kMse;
  recipe.metrics = {Metric::kMse, Metric::kMae, Metric::kR2};
  const at::Tensor output = counted_normal({2, 7, 3}, DType::kFloat64, 3),
                   target = counted_normal({2, 7, 3}, DType::kFloat64, 4);
  MetricSums sums(recipe, 2);
  sums.add(output.narrow(1, 0, 4), target.narrow(1, 0, 4));
  sums.add(output.narrow(1, 4, 3), target.narrow(1, 4, 3));
  const auto found = sums.result();
  for (int b = 0; b < 2; ++b) {
    const at::Tensor y = target[b], error = output[b] - y;
    const at::Tensor r2 = 1 - error.square().sum(0) / (y - y.mean(0)).square().sum(0);
    const auto& m = found[static_cast<std::size_t>(b)];
    CHECK(m.at("mse") == Approx(error.square().mean().item<double>()));
    CHECK(m.at("mae") == Approx(error.abs().mean().item<double>()));
    CHECK(m.at("r2") == Approx(r2.mean().item<double>()));
  }
}

TEST_CASE("r2 of a constant target is 1 if met exactly, else 0") {
  Recipe recipe;
  recipe.loss = Loss::kMse;
  recipe.metrics = {Metric::kR2};
  const bool column = GENERATE(false, true);                     // outputs [N] and [N, 1]
  const at::Tensor target = at::full({2, 7}, 0.1, at::kDouble);  // seven squares of 0.1 do not sum exactly
  at::Tensor output = target.clone();
  output[1][0] = 4.0;
  if (column) output = output.unsqueeze(2);
  MetricSums sums(recipe, 2);
  sums.add(output, target);
  CHECK(sums.result()[0].at("r2") == 1.0);
  CHECK(sums.result()[1].at("r2") == 0.0);
}

TEST_CASE("accuracy counts hits, of one slot without a slot dimension too") {
  Recipe recipe;
  recipe.metrics = {Metric::kAccuracy};
  const at::Tensor output = at::eye(4, at::kDouble), target = at::arange(4, at::kLong);
  at::Tensor wrong = target.clone();
  wrong[0] = 2;
  MetricSums all(recipe, 0), some(recipe, 0);
  all.add(output, target);
  some.add(output, wrong);
  CHECK(all.result()[0].at("accuracy") == 1.0);
  CHECK(some.result()[0].at("accuracy") == 0.75);
  recipe.loss = Loss::kBceWithLogits;
  MetricSums binary(recipe, 0);
  binary.add(at::tensor({{1.0}, {-1.0}, {2.0}}), at::tensor({1.0, 1.0, 1.0}));
  CHECK(binary.result()[0].at("accuracy") == Approx(2.0 / 3));
}

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
