// Compiled ops by themselves: gradients against finite differences, outputs against slow references.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("linear layers, with and without a relu behind them, used twice") {
  SmallGraph small;
  const ValueId x = small.weight("x", {7, 5}), w = small.weight("w", {5, 5}), bias = small.weight("bias", {5});
  const ValueId first = small.call("aten::linear", {x, w, bias});
  const ValueId active = small.call("aten::relu", {first});
  small.call("aten::linear", {active, w, bias});
  check_gradients(small);
}

TEST_CASE("a linear layer is a product") {
  SmallGraph small;
  const ValueId x = small.weight("x", {300, 70}), w = small.weight("w", {130, 70}), bias = small.weight("bias", {130});
  small.call("aten::linear", {x, w, bias});
  const Outcome outcome = run_training(small);
  for (const std::size_t i : {0, 17, 299}) {
    for (const std::size_t j : {0, 63, 64, 129}) {
      double sum = small.weights[2][j];
      for (std::size_t k = 0; k < 70; ++k) sum += small.weights[0][i * 70 + k] * small.weights[1][j * 70 + k];
      CHECK(outcome.output[i * 130 + j] == Approx(sum).epsilon(1e-12));
    }
  }
  check_gradients(small);
}

TEST_CASE("a linear layer of few samples is a product with a relu behind it") {
  constexpr std::size_t kRows = 9, kIn = 700, kOut = 130;
  SmallGraph small;
  const ValueId x = small.weight("x", {kRows, kIn}), w = small.weight("w", {kOut, kIn}), b = small.weight("b", {kOut});
  small.call("aten::relu", {small.call("aten::linear", {x, w, b})});
  const Outcome outcome = run_training(small);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kOut; ++j) {
      double sum = small.weights[2][j];
      for (std::size_t k = 0; k < kIn; ++k) sum += small.weights[0][i * kIn + k] * small.weights[1][j * kIn + k];
      CHECK(outcome.output[i * kOut + j] == Approx(std::max(sum, 0.0)).epsilon(1e-12).margin(1e-12));
      zeros += sum < 0 ? 1 : 0;
    }
  }
  CHECK(zeros > 0);
}

TEST_CASE("linear layers by columns and by rows of a weight, by its transpose, by one row for all") {
  struct Part {
    const char* name;
    std::string op;
    std::vector<Arg> args;  // behind the weight
    std::int64_t in;
  };
  const auto slice = [](std::int64_t dim, std::int64_t begin, std::int64_t end, std::int64_t step) {
    return std::vector<Arg>{dim, begin, end, step};
  };
  for (const Part& part :
       {Part{"columns", "aten::slice.Tensor", slice(1, 2, 6, 1), 4},
        Part{"every second column", "aten::slice.Tensor", slice(1, 0, 6, 2), 3},
        Part{"rows", "aten::slice.Tensor", slice(0, 1, 3, 1), 6}, Part{"transposed", "aten::t", {}, 6},
        Part{"one row", "aten::expand", {Ints{5, 6}, false}, 6}}) {
    CAPTURE(part.name);
    SmallGraph small;
    const ValueId x = small.weight("x", {7, part.in});
    const ValueId w = small.weight("w", part.op == "aten::expand" ? Shape{1, 6} : Shape{6, 6});
    std::vector<Arg> args = part.args;
    args.insert(args.begin(), w);
    const ValueId piece = small.call(part.op, args);
    const ValueId y = small.call("aten::linear", {x, piece, {}});
    small.call("aten::mul.Tensor", {y, y});
    check_gradients(small);
    check_float(small);
  }
}

TEST_CASE("elementwise ops") {
  for (const char* op : {"relu", "tanh", "sigmoid", "silu", "exp", "square"}) {
    CAPTURE(op);
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 4, 5});
    const ValueId turned = small.call("aten::transpose.int", {x, std::int64_t{1}, std::int64_t{2}});
    small.call(std::string("aten::") + op, {turned});
    check_gradients(small);
  }
}

TEST_CASE("ops of two tensors, broadcast either way") {
  for (const char* op : {"add", "sub", "mul", "div"}) {
    for (const Shape& other : {Shape{3, 4, 5}, Shape{5}, Shape{4, 1}, Shape{3, 1, 5}, Shape{}}) {
      CAPTURE(op, to_text(other));
      SmallGraph small;
      const ValueId x = small.weight("x", {3, 4, 5}), y = small.weight("y", other);
      for (double& v : small.weights[1]) v += v < 0 ? -1 : 1;  // no divisions by little
      const bool sums = op[0] == 'a' || op[0] == 's';
      const auto args = [&](ValueId a, ValueId b) {
        return sums ? std::vector<Arg>{a, b, 1.5} : std::vector<Arg>{a, b};
      };
      const ValueId first = small.call(std::string("aten::") + op + ".Tensor", args(x, y));
      small.call("aten::mul.Tensor", {first, x});
      check_gradients(small);
    }
  }
}

TEST_CASE("a multiple of a product or of a quotient is added, each tensor broadcast") {
  for (const char* op : {"aten::addcmul", "aten::addcdiv"}) {
    for (const Shape& added : {Shape{5, 1, 1}, Shape{3, 5, 4, 6}}) {
      CAPTURE(op, added);
      SmallGraph small;
      const ValueId x = small.weight("x", added), y = small.weight("y", {3, 5, 4, 6}), z = small.weight("z", {5, 1, 1});
      for (double& v : small.weights[2]) v = 2 + v;
      small.call(op, {x, y, z, 0.75});
      const Outcome outcome = run_training(small);
      for (std::size_t i = 0; i < outcome.output.size(); ++i) {
        const std::size_t c = i / 24 % 5;
        const double other = small.weights[2][c], v = small.weights[1][i];
        const double wanted = small.weights[0][added.size() == 3 ? c : i] +
                              0.75 * (op == std::string("aten::addcmul") ? v * other : v / other);
        CHECK(outcome.output[i] == Approx(wanted).epsilon(1e-12).margin(1e-14));
      }
      check_gradients(small);
      check_float(small);
    }
  }
}

TEST_CASE("views carry gradients back") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 6});
  const ValueId cut = small.call("aten::view", {x, Ints{4, 2, 3}});
  const ValueId turned = small.call("aten::permute", {cut, Ints{2, 0, 1}});
  const ValueId flat = small.call("aten::reshape", {turned, Ints{3, -1}});
  const ValueId both = small.call("aten::mul.Tensor", {flat, flat});
  const ValueId again = small.call("aten::reshape", {x, Ints{3, 8}});
  small.call("aten::add.Tensor", {both, again, std::int64_t{1}});
  check_gradients(small);
}

TEST_CASE("dropout masks gradients as it masks values") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 6});
  small.graph.hypers.push_back({"p", 0.5});
  small.hypers = {0.4};
  small.call("aten::dropout", {x, HyperRef{0}, true});
  check_gradients(small);
}

}  // namespace hfta::fusion::cpu::testing
