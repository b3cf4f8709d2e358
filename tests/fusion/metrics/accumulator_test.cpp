// Metrics of whole sets, batch by batch and slot by slot, against their definitions (naive.hpp).
#include "fusion/metrics/accumulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/metrics/every_spec.hpp"
#include "tests/fusion/metrics/naive.hpp"

namespace hfta::fusion::testing {
namespace {

using Values = std::map<std::string, double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Outputs and targets of several slots, [B, N, ...].
struct Set {
  OutputKind kind;
  at::Tensor output, target;
};

Set random_set(OutputKind kind, std::int64_t slots, std::int64_t n, std::uint64_t seed) {
  Set set{kind, counted_normal({slots, n, 4}, DType::kFloat64, seed), {}};
  if (kind == OutputKind::kClassScores) {
    std::vector<at::Tensor> labels;
    for (std::int64_t b = 0; b < slots; ++b) labels.push_back(counted_labels(n, 4, seed + 10 + b));
    set.target = at::stack(labels);
    return set;
  }
  set.target = counted_normal({slots, n, 4}, DType::kFloat64, seed + 10);
  if (kind == OutputKind::kValue) return set;
  set.output = (set.output * 4).round() / 4;  // ties
  if (kind == OutputKind::kProbability) set.output = set.output.sigmoid();
  set.target = set.target.gt(0).to(at::kDouble);
  if (kind == OutputKind::kMargin) set.target = set.target * 2 - 1;
  return set;
}

// In batches of these sizes, over and over.
std::vector<Values> measured(const Set& set, const std::vector<std::int64_t>& sizes,
                             std::optional<std::int64_t> ignore = std::nullopt) {
  const std::int64_t slots = set.output.size(0), n = set.output.size(1);
  MetricAccumulator sums(every_spec(set.kind), set.kind, static_cast<int>(slots), ignore);
  for (std::int64_t begin = 0, i = 0; begin < n; ++i) {
    const std::int64_t size = std::min(sizes[static_cast<std::size_t>(i) % sizes.size()], n - begin);
    sums.add(set.output.narrow(1, begin, size), set.target.narrow(1, begin, size));
    begin += size;
  }
  return sums.result();
}

Values measured_alone(OutputKind kind, const at::Tensor& output, const at::Tensor& target) {
  return measured({kind, output.unsqueeze(0), target.unsqueeze(0)}, {output.size(0)}).at(0);
}

Values naive(const Set& set, std::int64_t slot) {
  const at::Tensor output = set.output[slot], target = set.target[slot];
  switch (set.kind) {
    case OutputKind::kClassScores:
      return naive_classes(output, target);
    case OutputKind::kLogit:
    case OutputKind::kMargin:
      return naive_columns(output, target, 0);
    case OutputKind::kProbability:
      return naive_columns(output, target, 0.5);
    case OutputKind::kValue:
      break;
  }
  return naive_values(output, target);
}

void check_equal(const Values& found, const Values& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    REQUIRE(found.count(name) == 1);
    if (std::isnan(value)) {
      CHECK(std::isnan(found.at(name)));
    } else {
      CHECK(found.at(name) == Approx(value).epsilon(1e-11).margin(1e-12));
    }
  }
}

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && std::memcmp(&x.second, &y.second, sizeof(double)) == 0;
         });
}

OutputKind every_kind() {
  return GENERATE(OutputKind::kClassScores, OutputKind::kLogit, OutputKind::kProbability, OutputKind::kMargin,
                  OutputKind::kValue);
}

}  // namespace

TEST_CASE("every metric of every slot is that of its definition, however the set is cut", "[numeric]") {
  const OutputKind kind = every_kind();
  CAPTURE(name_of(kind));
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Set set = random_set(kind, 3, 41, seed);
    for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{{41}, {1}, {7, 2}, {40, 1}}) {
      const std::vector<Values> found = measured(set, sizes);
      REQUIRE(found.size() == 3);
      for (std::int64_t b = 0; b < 3; ++b) check_equal(found[static_cast<std::size_t>(b)], naive(set, b));
    }
  }
}

TEST_CASE("metrics of counts do not change a bit with the cut into batches") {
  const OutputKind kind =
      GENERATE(OutputKind::kClassScores, OutputKind::kLogit, OutputKind::kProbability, OutputKind::kMargin);
  const Set set = random_set(kind, 2, 50, 5);
  std::vector<Values> whole = measured(set, {50}), cut = measured(set, {3, 1, 8});
  for (std::size_t b = 0; b < 2; ++b) {
    for (Values* values : {&whole[b], &cut[b]}) values->erase("perplexity");  // a sum of logarithms
    CHECK(same_bits(whole[b], cut[b]));
  }
}

TEST_CASE("a slot without a slot dimension is measured as one with it") {
  const Set set = random_set(every_kind(), 1, 20, 7);
  MetricAccumulator one(every_spec(set.kind), set.kind, 0);
  one.add(set.output[0], set.target[0]);
  CHECK(same_bits(one.result().at(0), measured(set, {20}).at(0)));
}

TEST_CASE("a NaN or infinite output changes no bit of another slot, and a NaN is NaN in every metric of its own") {
  const OutputKind kind = every_kind();
  CAPTURE(name_of(kind));
  Set set = random_set(kind, 3, 20, 9);
  const std::vector<Values> clean = measured(set, {6});
  set.output = set.output.clone();
  set.output[1][7][2] = kNan;
  set.output[1][8][0] = std::numeric_limits<double>::infinity();
  const std::vector<Values> found = measured(set, {6});
  CHECK(same_bits(found[0], clean[0]));
  CHECK(same_bits(found[2], clean[2]));
  for (const auto& [name, value] : found[1]) {
    CAPTURE(name);
    CHECK(std::isnan(value));
  }
}

TEST_CASE("targets that are left out are as if they were not there, whatever the outputs") {
  const std::int64_t ignore = GENERATE(-100, 255, 2);
  Set set = random_set(OutputKind::kClassScores, 2, 30, 11);
  const at::Tensor out = counted_labels(30, 3, 4).eq(0);
  set.target = at::where(set.target.eq(ignore), 1, set.target);
  const at::Tensor kept = out.logical_not().nonzero().squeeze(1);
  const Set rest{set.kind, set.output.index_select(1, kept), set.target.index_select(1, kept)};
  set.target = at::where(out, ignore, set.target);
  set.output = at::where(out.unsqueeze(1), kNan, set.output);
  const std::vector<Values> found = measured(set, {8}, ignore), expected = measured(rest, {8});
  for (std::size_t b = 0; b < 2; ++b) check_equal(found[b], expected[b]);
}

TEST_CASE("where no position counts every metric is NaN, of that slot alone") {
  Set set = random_set(OutputKind::kClassScores, 2, 6, 13);
  const Values clean = measured(set, {4}).at(1);
  set.target[0].fill_(-100);
  const std::vector<Values> found = measured(set, {4}, -100);
  CHECK(same_bits(found[1], clean));
  for (const auto& [name, value] : found[0]) {
    CAPTURE(name);
    CHECK(std::isnan(value));
  }
}

TEST_CASE("each step and each pixel is a position") {
  const OutputKind kind = GENERATE(OutputKind::kClassScores, OutputKind::kLogit);
  const Set flat = random_set(kind, 2, 30, 15);
  const auto folded = [&](const at::Tensor& t, const std::vector<std::int64_t>& places) {
    std::vector<std::int64_t> shape = {2, 30};
    for (const std::int64_t size : places) shape[1] /= size;
    shape.insert(shape.end(), places.begin(), places.end());
    if (t.dim() == 2) return t.reshape(shape);
    shape.push_back(4);
    return t.reshape(shape).movedim(-1, 2);
  };
  const std::vector<Values> expected = measured(flat, {30});
  for (const std::vector<std::int64_t>& places : std::vector<std::vector<std::int64_t>>{{5}, {3, 2}}) {
    const std::vector<Values> found = measured({kind, folded(flat.output, places), folded(flat.target, places)}, {2});
    for (std::size_t b = 0; b < 2; ++b) check_equal(found[b], expected[b]);
  }
}

TEST_CASE("a target [N] beside an output [N, 1] is one column, as is [N] beside [N]") {
  const OutputKind kind =
      GENERATE(OutputKind::kLogit, OutputKind::kProbability, OutputKind::kMargin, OutputKind::kValue);
  Set set = random_set(kind, 2, 20, 17);
  const at::Tensor output = set.output.select(2, 0), target = set.target.select(2, 0);
  const std::vector<Values> expected = measured({kind, output, target}, {6});
  CHECK(same_bits(measured({kind, output.unsqueeze(2), target}, {6}).at(1), expected[1]));
  CHECK(same_bits(measured({kind, output.unsqueeze(2), target.unsqueeze(2)}, {6}).at(1), expected[1]));
}

TEST_CASE("of equal scores the first class is predicted, and is ahead of the others") {
  const at::Tensor output = at::tensor({1.0, 3.0, 3.0, 0.0}).expand({3, 4}), target = at::tensor({1, 2, 0}, at::kLong);
  const Values found = measured_alone(OutputKind::kClassScores, output, target);
  CHECK(found.at("accuracy") == Approx(1.0 / 3));
  CHECK(found.at("top_1") == Approx(1.0 / 3));
  CHECK(found.at("top_2") == Approx(2.0 / 3));
  CHECK(found.at("top_3") == 1.0);
  CHECK(found.at("confusion_2_1") == 1.0);
}

TEST_CASE("top_k of at least as many as there are classes is 1") {
  MetricAccumulator sums({{.name = "top_k", .k = 9}}, OutputKind::kClassScores, 0);
  sums.add(at::eye(3, at::kDouble), at::tensor({1, 2, 0}, at::kLong));
  CHECK(sums.result().at(0).at("top_9") == 1.0);
}

// What scikit-learn warns of: docs/metrics.md.
TEST_CASE("sets in which classes are missing") {
  const at::Tensor scores = at::tensor({2.0, 0.0, 1.0, 0.0, 2.0, 1.0, 3.0, 0.0, 1.0}).reshape({3, 3});  // 0, 1, 0
  Values found = measured_alone(OutputKind::kClassScores, scores, at::tensor({0, 1, 1}, at::kLong));
  CHECK(found.at("f1") == Approx(2.0 / 3));  // class 2 is nowhere
  CHECK(found.at("f1_2") == 0.0);
  CHECK(found.at("mean_iou") == 0.5);
  CHECK(found.at("balanced_accuracy") == 0.75);
  CHECK(std::isnan(found.at("auroc_2")));
  CHECK(std::isnan(found.at("average_precision_2")));
  CHECK(found.at("auroc") == Approx((found.at("auroc_0") + found.at("auroc_1")) / 2));

  found = measured_alone(OutputKind::kClassScores, scores, at::tensor({1, 1, 1}, at::kLong));
  CHECK(std::isnan(found.at("auroc")));
  CHECK(found.at("average_precision") == 1.0);
  CHECK(found.at("recall_weighted") == Approx(1.0 / 3));
  CHECK(found.at("precision_weighted") == 1.0);

  const bool yes = GENERATE(false, true);
  found = measured_alone(OutputKind::kLogit, at::tensor({1.0, -1.0}), at::full({2}, yes ? 1.0 : 0.0));
  CHECK(std::isnan(found.at("auroc")));
  CHECK(std::isnan(found.at("average_precision")) == !yes);
  CHECK(found.at("precision") == (yes ? 1.0 : 0.0));
  CHECK(found.at("recall") == (yes ? 0.5 : 0.0));
  CHECK(found.at("balanced_accuracy") == 0.5);
}

TEST_CASE("one class, and one sample") {
  const Values found =
      measured_alone(OutputKind::kClassScores, at::ones({1, 1}, at::kDouble), at::zeros({1}, at::kLong));
  CHECK(found.at("accuracy") == 1.0);
  CHECK(found.at("confusion_0_0") == 1.0);
  CHECK(std::isnan(found.at("auroc")));
  CHECK(measured_alone(OutputKind::kValue, at::ones({1}), at::zeros({1})).at("r2") == 0.0);
}

TEST_CASE("areas of more scores than are sorted at once", "[numeric]") {
  const std::int64_t n = 200'000;  // five classes at a time
  const at::Tensor target = at::arange(n, at::kLong).remainder(7);
  const at::Tensor output = at::zeros({n, 7}, at::kFloat).scatter_(1, target.unsqueeze(1), 1.0);
  MetricAccumulator sums({{.name = "auroc", .average = Average::kNone}}, OutputKind::kClassScores, 0);
  sums.add(output, target);
  const Values found = sums.result().at(0);
  CHECK(found.size() == 7);
  for (const auto& [name, value] : found) CHECK(value == 1.0);
}

TEST_CASE("r2 of a constant column is 1 if met exactly, else 0") {
  const bool column = GENERATE(false, true);
  const at::Tensor target = at::full({2, 7}, 0.1, at::kDouble);  // seven squares of 0.1 do not sum exactly
  at::Tensor output = target.clone();
  output[1][0] = 4.0;
  if (column) output = output.unsqueeze(2);
  const std::vector<Values> found = measured({OutputKind::kValue, output, target}, {3});
  CHECK(found[0].at("r2") == 1.0);
  CHECK(found[1].at("r2") == 0.0);
}

TEST_CASE("r2 of targets far from the first one, or from zero, loses no digits", "[numeric]") {
  const bool first = GENERATE(false, true);
  Set set = random_set(OutputKind::kValue, 1, 60, 19);
  if (first) {
    set.target[0][0] += 1e6;
    set.output[0][0] += 1e6;
  } else {
    set.target += 1e6;
    set.output += 1e6;
  }
  const double expected = naive(set, 0).at("r2");
  CHECK(1 - measured(set, {1}).at(0).at("r2") == Approx(1 - expected).epsilon(1e-9));
}

TEST_CASE("outputs are read before the next batch takes their memory") {
  const Set set = random_set(OutputKind::kLogit, 1, 20, 21);
  const at::Tensor output = at::empty({1, 10, 4}, at::kDouble);
  MetricAccumulator sums({{.name = "auroc"}}, OutputKind::kLogit, 1);
  for (const std::int64_t begin : {0, 10}) {
    output.copy_(set.output.narrow(1, begin, 10));
    sums.add(output, set.target.narrow(1, begin, 10));
  }
  CHECK(sums.result().at(0).at("auroc") == Approx(naive(set, 0).at("auroc")).epsilon(1e-12));
}

TEST_CASE("what metrics are refused, and how") {
  const auto error_of = [](const std::function<void()>& what) {
    try {
      what();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto classes = [](const char* name) {
    return MetricAccumulator({{.name = name}}, OutputKind::kClassScores, 0);
  };
  CHECK(error_of([&] { classes("acuracy"); }) == "metrics: found 'acuracy', wanted a metric; did you mean 'accuracy'?");
  CHECK(error_of([&] { classes("mse"); }) == "metrics: found mse, wanted a metric of class scores");
  CHECK(error_of([&] {
          classes("accuracy").add(at::zeros({3, 4}), at::zeros({5}, at::kLong));
        }) == "metrics: found class scores [3, 4] with targets [5], wanted scores [N, C, ...] with targets [N, ...]");
  CHECK(error_of([&] { static_cast<void>(classes("accuracy").result()); }) == "metrics: found none, wanted a batch");
  CHECK(error_of([&] {
          auto sums = classes("confusion_matrix");
          sums.add(at::zeros({3, 65}), at::zeros({3}, at::kLong));
          static_cast<void>(sums.result());
        }) ==
        "metrics: confusion_matrix: found 4225 numbers, one for each class or pair of classes; wanted at most 4096");
}

TEST_CASE("no metrics are no work, and no result") {
  MetricAccumulator sums({}, OutputKind::kValue, 3);
  sums.add(at::zeros({3, 2}), at::zeros({3, 2}));
  CHECK(sums.result() == std::vector<Values>(3));
}

}  // namespace hfta::fusion::testing
