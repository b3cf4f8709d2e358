// Losses and metrics against their definitions, worked out by hand or by the plain op.
#include "fusion/eager/loss.hpp"

#include <cmath>

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {

TEST_CASE("each slot's loss is the plain loss of its own batch", "[numeric]") {
  const auto loss = GENERATE(Loss::kCrossEntropy, Loss::kMse, Loss::kBceWithLogits);
  const at::Tensor output = counted_normal({3, 5, 4}, DType::kFloat64, 1);
  const bool classes = loss == Loss::kCrossEntropy;
  const at::Tensor target = classes
                                ? at::stack({counted_labels(5, 4, 1), counted_labels(5, 4, 2), counted_labels(5, 4, 3)})
                                : counted_normal({3, 5, 4}, DType::kFloat64, 2).gt(0).to(at::kDouble);
  const std::vector<double> smoothing = {0, 0.1, 0.5};
  const at::Tensor found = slot_loss(loss, output, target, 3, smoothing);
  for (int b = 0; b < 3; ++b) {
    const std::vector<double> own = {smoothing[static_cast<std::size_t>(b)]};
    const at::Tensor expected = slot_loss(loss, output.select(0, b), target.select(0, b), 0, own);
    CHECK(found[b].item<double>() == Approx(expected.item<double>()).epsilon(1e-13));
  }
}

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
    CHECK(m.at("loss") == Approx(error.square().mean().item<double>()));
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

TEST_CASE("a NaN output is a NaN loss of its slot alone") {
  Recipe recipe;
  MetricSums sums(recipe, 2);
  at::Tensor output = counted_normal({2, 4, 3}, DType::kFloat64, 3);
  output[1][0][0] = std::nan("");
  sums.add(output, at::stack({counted_labels(4, 3, 1), counted_labels(4, 3, 1)}));
  CHECK(std::isfinite(sums.result()[0].at("loss")));
  CHECK(std::isnan(sums.result()[1].at("loss")));
}

}  // namespace hfta::fusion::testing
