// Sums, means and largest elements.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

// The reduction of x [3, 20, 4, 5], however it lies in memory, over dimensions; kept ones row-major.
std::vector<double> reference(const std::vector<double>& x, const Ints& dims, const std::string& op) {
  const Dims sizes = {3, 20, 4, 5};
  Dims steps(4, 0);
  std::int64_t kept = 1;
  for (std::size_t d = 4; d-- > 0;) {
    if (!dims.empty() && std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end()) {
      steps[d] = kept;
      kept *= sizes[d];
    }
  }
  std::vector<double> out(static_cast<std::size_t>(kept), op == "aten::amax" ? -INFINITY : 0);
  for (std::int64_t i = 0; i < 1200; ++i) {
    const std::int64_t at[] = {i / 400, i / 20 % 20, i / 5 % 4, i % 5};
    std::int64_t place = 0;
    for (std::size_t d = 0; d < 4; ++d) place += at[d] * steps[d];
    double& to = out[static_cast<std::size_t>(place)];
    const double v = x[static_cast<std::size_t>(i)];
    if (op == "aten::amax") to = std::max(to, v);
    if (op == "aten::sum.dim_IntList") to += v;
    if (op == "aten::mean.dim") to += v * static_cast<double>(kept) / 1200;
    if (op == "aten::linalg_vector_norm") to += v * v;
  }
  if (op == "aten::linalg_vector_norm")
    std::transform(out.begin(), out.end(), out.begin(), [](double v) { return std::sqrt(v); });
  return out;
}

}  // namespace

TEST_CASE("reductions over any dimensions of tensors however they lie") {
  for (const std::string op : {"aten::sum.dim_IntList", "aten::mean.dim", "aten::amax", "aten::linalg_vector_norm"}) {
    for (const Ints& dims : {Ints{3}, Ints{1}, Ints{0}, Ints{2, 3}, Ints{1, 3}, Ints{0, 2}, Ints{}}) {
      for (const Ints& order : {Ints{0, 1, 2, 3}, Ints{0, 3, 1, 2}, Ints{2, 0, 3, 1}}) {
        for (const bool keep : {false, true}) {
          CAPTURE(op, dims, order, keep);
          SmallGraph small;
          const Dims sizes = {3, 20, 4, 5};
          Shape stored(4);
          for (std::size_t d = 0; d < 4; ++d) stored[static_cast<std::size_t>(order[d])] = sizes[d];
          const ValueId x = small.weight("x", stored);
          const ValueId turned = small.call("aten::permute", {x, order});
          const std::vector<double> seen = [&] {  // x as the op sees it
            SmallGraph copy = small;
            copy.call("aten::mul.Scalar", {turned, 1.0});
            return run_training(copy).output;
          }();
          std::vector<Arg> args = {turned, dims, keep};
          if (op != "aten::amax") args.emplace_back();
          if (op == "aten::linalg_vector_norm") args.insert(args.begin() + 1, 2.0);
          const ValueId y = small.call(op, args);
          const Outcome outcome = run_training(small);
          const std::vector<double> wanted = reference(seen, dims, op);
          REQUIRE(outcome.output.size() == wanted.size());
          CHECK(outcome.sizes.size() == (keep ? 4 : dims.empty() ? 0 : 4 - dims.size()));
          double worst = 0;
          for (std::size_t i = 0; i < wanted.size(); ++i)
            worst = std::max(worst, std::abs(outcome.output[i] - wanted[i]));
          CHECK(worst < 1e-12);
          small.call("aten::mul.Tensor", {y, y});
          check_gradients(small);
          check_float(small);
        }
      }
    }
  }
}

TEST_CASE("the mean and the sum of everything") {
  for (const char* op : {"aten::sum", "aten::mean"}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 40});
    const ValueId y = small.call(op, {x, {}});
    small.call("aten::mul.Tensor", {x, y});
    check_gradients(small);
  }
}

TEST_CASE("a norm of zero has a gradient of zero, and other norms than Euclid's are not compiled") {
  for (const Ints& dims : {Ints{0}, Ints{1}}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {2, 3});
    small.weights[0] = {0, 0, 0, 0, 3, 4};
    small.call("aten::norm.ScalarOpt_dim", {x, {}, dims, true});
    const Outcome outcome = run_training(small);
    CHECK(outcome.output == (dims[0] == 0 ? std::vector<double>{0, 3, 4} : std::vector<double>{0, 5}));
    const std::vector<double>& gradient = outcome.gradients[0];
    CHECK(std::count(gradient.begin(), gradient.end(), 0.0) == 4);
    CHECK((gradient[4] > 0 && gradient[5] > gradient[4]));
  }
  SmallGraph small;
  small.call("aten::linalg_vector_norm", {small.weight("x", {2, 3}), 1.0, Ints{1}, false, {}});
  CHECK_THROWS_AS(run_training(small), Error);
}

TEST_CASE("norms of zero behind a root, and of one number") {
  SmallGraph small;
  const ValueId x = small.weight("x", {2, 3});
  small.weights[0] = {0, 0, 0, 1, 2, 2};
  SmallGraph one = small;
  small.call("aten::sqrt", {small.call("aten::linalg_vector_norm", {x, 2.0, Ints{-1}, false, {}})});
  const Outcome rooted = run_training(small);
  CHECK(std::isnan(rooted.gradients[0][0]));  // 0 times infinity, as PyTorch has it
  CHECK(rooted.gradients[0][3] > 0);
  one.weights[0][1] = -1e30;  // whose square is no float
  const ValueId alone = one.call("aten::unsqueeze", {x, std::int64_t{0}});
  one.call("aten::linalg_vector_norm", {alone, 2.0, Ints{0}, false, {}});
  const Outcome outcome = run_in_float(one);
  CHECK(outcome.output[1] == Approx(1e30));
  CHECK(outcome.output[4] == 2);
}

TEST_CASE("the largest along a dimension, and where it is") {
  for (const std::int64_t dim : {0, 1, -1}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 4, 5});
    const ValueId y = small.call("aten::max.dim", {x, dim, true}, 2);
    small.call("aten::sub.Tensor", {x, y, std::int64_t{1}});
    check_gradients(small);
    CHECK(*std::max_element(small.weights[0].begin(), small.weights[0].end()) < 1);
    const Outcome outcome = run_training(small);
    CHECK(*std::max_element(outcome.output.begin(), outcome.output.end()) == 0);
  }
}

TEST_CASE("equal largest elements share a gradient evenly, or the first takes it all") {
  for (const bool first : {false, true}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {1, 4});
    small.weights[0] = {1, 3, 2, 3};
    if (first) {
      small.call("aten::max.dim", {x, std::int64_t{1}, false}, 2);
    } else {
      small.call("aten::amax", {x, Ints{1}, false});
    }
    const std::vector<double> gradient = run_training(small).gradients[0];
    CHECK(gradient[0] == 0);
    CHECK(gradient[1] == (first ? 6 : 3));
    CHECK(gradient[3] == (first ? 0 : 3));
  }
}

TEST_CASE("a NaN is the largest, and stays in its row") {
  SmallGraph small;
  const ValueId x = small.weight("x", {2, 4});
  small.weights[0][2] = NAN;
  small.call("aten::amax", {x, Ints{1}, false});
  const Outcome outcome = run_in_float(small);
  CHECK(std::isnan(outcome.output[0]));
  CHECK_FALSE(std::isnan(outcome.output[1]));
}

TEST_CASE("running sums along any dimension, of a tensor that lies in another order too") {
  for (const std::int64_t dim : {0, 1, -1}) {
    for (const Ints& order : {Ints{0, 1, 2}, Ints{2, 0, 1}}) {
      CAPTURE(dim, order);
      SmallGraph small;
      const ValueId x = small.weight("x", {3, 7, 5});
      const ValueId turned = small.call("aten::permute", {x, order});
      small.call("aten::cumsum", {turned, dim, {}});
      const Outcome outcome = run_training(small);
      // The last of the sums along the dimension, at the other dimensions' first places.
      const std::vector<std::int64_t> sizes = {3, 7, 5}, strides = {35, 5, 1};
      const std::size_t seen = dim < 0 ? 2 : static_cast<std::size_t>(dim);
      const auto stored = static_cast<std::size_t>(order[seen]);
      double total = 0;
      for (std::int64_t i = 0; i < sizes[stored]; ++i) {
        total += small.weights[0][static_cast<std::size_t>(i * strides[stored])];
      }
      std::int64_t step = 1;
      for (std::size_t d = seen + 1; d < 3; ++d) step *= outcome.sizes[d];
      CHECK(outcome.sizes[seen] == sizes[stored]);
      CHECK(outcome.output[static_cast<std::size_t>((sizes[stored] - 1) * step)] == Approx(total).epsilon(1e-10));
      check_gradients(small);
      check_float(small);
    }
  }
}

}  // namespace hfta::fusion::cpu::testing
