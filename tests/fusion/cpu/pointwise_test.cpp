// Functions of one number, choices, constants.
#include <catch2/catch.hpp>
#include <cmath>

#include "fusion/simd/exp.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr auto whole(std::int64_t n) { return n; }

struct UnaryCase {
  std::string op;
  std::vector<Arg> args;  // behind the input
  double (*f)(double);
  bool positive = false;  // only of positive numbers
};

double between(double x, double low, double high) { return std::min(std::max(x, low), high); }
double softplus(double x) { return std::log1p(std::exp(x)); }

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {"aten::gelu", {std::string("none")}, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"aten::neg", {}, [](double x) { return -x; }},
      {"aten::abs", {}, [](double x) { return std::abs(x); }},
      {"aten::log", {}, [](double x) { return std::log(x); }, true},
      {"aten::rsqrt", {}, [](double x) { return 1 / std::sqrt(x); }, true},
      {"aten::reciprocal", {}, [](double x) { return 1 / x; }, true},
      {"aten::pow.Tensor_Scalar", {2.0}, [](double x) { return x * x; }},
      {"aten::pow.Tensor_Scalar", {whole(3)}, [](double x) { return x * x * x; }},
      {"aten::pow.Tensor_Scalar", {-1.0}, [](double x) { return 1 / x; }, true},
      {"aten::pow.Tensor_Scalar", {-0.5}, [](double x) { return 1 / std::sqrt(x); }, true},
      {"aten::pow.Tensor_Scalar", {1.5}, [](double x) { return std::pow(x, 1.5); }, true},
      {"aten::pow.Tensor_Scalar", {0.5}, [](double x) { return std::sqrt(x); }, true},
      {"aten::softplus", {2.0, 20.0}, [](double x) { return softplus(2 * x) / 2; }},
      {"aten::mish", {}, [](double x) { return x * std::tanh(softplus(x)); }},
      {"aten::hardtanh", {-1.0, 2.0}, [](double x) { return between(x, -1, 2); }},
      {"aten::relu6", {}, [](double x) { return between(x, 0, 6); }},
      {"aten::clamp", {-1.0, {}}, [](double x) { return std::max(x, -1.0); }},
      {"aten::clamp", {-1.0, 1.5}, [](double x) { return between(x, -1, 1.5); }},
      {"aten::hardsigmoid", {}, [](double x) { return between(x + 3, 0, 6) / 6; }},
      {"aten::hardswish", {}, [](double x) { return x * between(x + 3, 0, 6) / 6; }},
  };
  return cases;
}

// Values of the graph's output, had by multiplying it with 1: outputs are floating-point tensors.
std::vector<double> values_of(SmallGraph small, const std::string& op, std::vector<Arg> args) {
  const ValueId y = small.call(op, std::move(args));
  small.call("aten::mul.Tensor", {y, small.weight("one", {})});
  small.weights.back() = {1};
  return run_training(small).output;
}

}  // namespace

TEST_CASE("functions of one number") {
  for (const UnaryCase& c : unary_cases()) {
    CAPTURE(c.op);
    SmallGraph small;
    const ValueId x = small.weight("x", {4, 37});
    for (double& v : small.weights[0]) v = c.positive ? 2 + 1.5 * v : 7 * v;
    std::vector<Arg> args = c.args;
    args.insert(args.begin(), x);
    small.call(c.op, args);
    const Outcome outcome = run_training(small);
    for (std::size_t i = 0; i < outcome.output.size(); ++i) {
      CHECK(outcome.output[i] == Approx(c.f(small.weights[0][i])).epsilon(1e-10).margin(1e-12));
    }
    check_gradients(small, 1e-5);
    check_float(small);
  }
}

// As torch's gradients, which are chosen and not multiplied: 0 times infinity would be NaN.
TEST_CASE("what a choice leaves out gets no gradient, whatever the gradient is behind it") {
  const auto [op, args, low] = GENERATE(table<std::string, std::vector<Arg>, double>({
      {"aten::relu", {}, -1},
      {"aten::clamp", {0.0, {}}, -1},
      {"aten::clamp_min", {0.0}, -1},
      {"aten::clamp", {0.0, 5.0}, -1},
      {"aten::relu6", {}, -1},
      {"aten::hardtanh", {0.0, 5.0}, -1},
      {"aten::hardsigmoid", {}, -4},
      {"aten::hardswish", {}, -4},
  }));
  CAPTURE(op);
  SmallGraph small;
  const ValueId x = small.weight("x", {40});
  for (std::size_t i = 0; i < 40; ++i) small.weights[0][i] = i % 3 == 0 ? low : 1 + 0.01 * static_cast<double>(i);
  std::vector<Arg> all = {x};
  all.insert(all.end(), args.begin(), args.end());
  small.call("aten::sqrt", {small.call(op, all)});
  for (const Outcome& outcome : {run_training(small), run_in_float(small)}) {
    for (std::size_t i = 0; i < 40; ++i) {
      CHECK(std::isfinite(outcome.gradients[0][i]));
      if (i % 3 == 0) CHECK(outcome.gradients[0][i] == 0);
    }
  }
}

TEST_CASE("the normal distribution in float") {
  for (float x = -12; x < 12; x += 1e-3F) {
    const double below = std::erfc(static_cast<double>(x) * -M_SQRT1_2) / 2;
    const double density = std::exp(static_cast<double>(x) * x / -2) * M_2_SQRTPI * M_SQRT1_2 / 2;
    const simd::Normal<float> found = simd::vector_normal(x);
    CAPTURE(x);
    const double by_square = 1e-7 * x * x / 2;  // exp's argument is rounded
    CHECK(std::abs(found.below - below) <= std::min(1.5e-7, (3.1e-7 + by_square) * below + 1e-37));
    CHECK(std::abs(found.density - density) <= (2.4e-7 + by_square) * density + 1e-37);
  }
  CHECK(std::isnan(simd::vector_normal(NAN).below));
  CHECK(std::isnan(simd::vector_normal(NAN).density));
  for (const float far : {20.0F, INFINITY}) {
    CHECK(simd::vector_normal(far).below == 1);
    CHECK(simd::vector_normal(-far).below == 0);
    CHECK(simd::vector_normal(-far).density == 0);
  }
}

TEST_CASE("a mask made while running hides what is above the diagonal") {
  SmallGraph small;
  const ValueId x = small.weight("x", {2, 3, 3});
  const ValueId ones = small.call("aten::ones", {Ints{3, 3}, {}, {}, {}, {}});
  const ValueId lower = small.call("aten::tril", {ones, whole(0)});
  const ValueId hidden = small.call("aten::eq.Scalar", {lower, whole(0)});
  small.call("aten::masked_fill.Scalar", {x, hidden, -7.5});
  const Outcome outcome = run_training(small);
  for (std::size_t i = 0; i < 18; ++i) {
    CHECK(outcome.output[i] == (i % 3 > i / 3 % 3 ? -7.5 : small.weights[0][i]));
  }
  check_gradients(small);
  check_float(small);
}

TEST_CASE("choices between tensors that are repeated") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 1}), y = small.weight("y", {2, 4, 5}), z = small.weight("z", {5});
  const ValueId mask = small.call("aten::gt.Tensor", {x, z});
  const ValueId other = small.call("aten::logical_not", {mask});
  const ValueId first = small.call("aten::where.self", {mask, x, y});
  const ValueId second = small.call("aten::where.self", {other, y, z});
  small.call("aten::mul.Tensor", {first, second});
  check_gradients(small);
  check_float(small);
}

TEST_CASE("constants") {
  const std::vector<Arg> rest = {DType::kFloat64, {}, {}, {}};
  const auto with_rest = [&](std::vector<Arg> args) {
    args.insert(args.end(), rest.begin(), rest.end());
    return args;
  };
  CHECK(values_of({}, "aten::arange", with_rest({whole(4)})) == std::vector<double>{0, 1, 2, 3});
  CHECK(values_of({}, "aten::arange.start", with_rest({whole(2), whole(4)})) == std::vector<double>{2, 3});
  CHECK(values_of({}, "aten::arange.start_step", with_rest({3.0, 0.0, -1.5})) == std::vector<double>{3, 1.5});
  CHECK(values_of({}, "aten::full", with_rest({Ints{2}, 2.5})) == std::vector<double>{2.5, 2.5});
  CHECK(values_of({}, "aten::zeros", with_rest({Ints{2, 1}})) == std::vector<double>{0, 0});
  SmallGraph small;
  const ValueId table = small.weight("table", {5, 3});
  const ValueId places = small.call("aten::arange", {whole(4), {}, {}, {}, {}});
  small.call("aten::embedding", {table, places, whole(-1), false, false});
  CHECK(run_training(small).output[10] == small.weights[0][10]);
  check_gradients(small);
}

}  // namespace hfta::fusion::cpu::testing
