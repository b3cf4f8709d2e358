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
  sums.add({output, loss, at::ones({2, 4}, at::kDouble)}, counted_labels(4, 3, 1), 4, 4);
  CHECK(std::isfinite(sums.result()[0].at("loss")));
  CHECK(std::isnan(sums.result()[1].at("loss")));
}

TEST_CASE("what a batch was filled up with does not count, and other sizes are no samples") {
  Recipe recipe;
  recipe.loss = Loss::kModel;
  recipe.terms = {"hits", "of_class"};
  for (const auto& [name, text] : {std::pair("hits", "hits"), {"mean", "mean(hits)"}, {"classes", "of_class"}}) {
    recipe.formulas.push_back({name, Formula::parse(text)});
  }
  const int slots = GENERATE(0, 2);
  const auto wide = [&](const at::Tensor& t) { return slots > 0 ? at::stack({t, 2 * t}) : t; };
  const auto numbers = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  EvaluationSums sums(recipe, slots);
  sums.add({wide(numbers({1, 2, 3, 4})), wide(numbers({1, 0, 1, 1})), wide(numbers({1, 2, 3}))}, {}, 4, 4);
  sums.add({wide(numbers({5, 9, 9, 9})), wide(numbers({1, 7, 7, 7})), wide(numbers({1, 2, 3}))}, {}, 1, 4);
  for (std::size_t b = 0; b < static_cast<std::size_t>(std::max(slots, 1)); ++b) {
    const auto metrics = sums.result()[b];
    const auto factor = static_cast<double>(b + 1);
    CHECK(metrics.at("loss") == Approx(3 * factor));
    CHECK(metrics.at("hits") == Approx(4 * factor));
    CHECK(metrics.at("mean") == Approx(0.8 * factor));
    CHECK(metrics.at("classes") == Approx(12 * factor));
  }
}

TEST_CASE("a batch's weight is what its mean counts by") {
  Recipe recipe;
  recipe.loss = Loss::kModel;
  recipe.loss_options.weighted = true;
  recipe.terms = {"part"};
  recipe.formulas = {{"part", Formula::parse("mean(part)")}, {"both", Formula::parse("loss * samples")}};
  const auto number = [](double value) { return at::full({}, value, at::kDouble); };
  EvaluationSums sums(recipe, 0);
  sums.add({number(2), number(10), number(1)}, {}, 4, 4);
  sums.add({number(5), number(5), number(7)}, {}, 4, 4);
  sums.add({number(std::nan("")), number(0), number(std::nan(""))}, {}, 1, 1);  // all of its labels are ignored
  const auto metrics = sums.result()[0];
  CHECK(metrics.at("loss") == Approx(3));
  CHECK(metrics.at("part") == Approx(3));
  CHECK(metrics.at("both") == Approx(27));
}

}  // namespace hfta::fusion::testing
