// Calls that are compiled along with one another: gated activations, RMS norms and rotary embeddings that a model
// writes out. Each is judged by its formula and by finite differences, and has to be fused, or must not be.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

// The kernels of the forward and backward pass that are of this op.
std::int64_t kernels_of(const SmallGraph& small, const std::string& op) {
  Graph graph = with_error(small.graph, DType::kFloat64);
  std::vector<int> index(graph.nodes.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int>(i);
  const CompiledGraph plan = compile({.graph = graph, .index = index, .dtype = DType::kFloat64}).plan;
  return std::count_if(plan.infos.begin(), plan.infos.end(), [&](const auto& info) { return info.op == op; });
}

void set_shape(SmallGraph& small, ValueId id, Shape shape) {
  small.graph.values[static_cast<std::size_t>(id)].shape = std::move(shape);
}

double activation(const std::string& op, double x) {
  if (op == "aten::silu") return x / (1 + std::exp(-x));
  if (op == "aten::mish") return x * std::tanh(std::log1p(std::exp(x)));
  return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
}

struct RmsCase {
  bool weighted = true, cast = false, ends_in_product = true;
  std::string square = "aten::pow.Tensor_Scalar";
  bool seen_elsewhere = false;
};

// x / sqrt(mean x^2 + eps), times a weight: as Llama writes it.
ValueId write_rms_norm(SmallGraph& small, ValueId x, ValueId w, const RmsCase& c) {
  const ValueId square =
      c.square == "aten::square" ? small.call(c.square, {x}) : small.call(c.square, {x, std::int64_t{2}});
  const ValueId mean = small.call("aten::mean.dim", {square, Ints{-1}, true, Arg()});
  const ValueId shifted = small.call("aten::add.Tensor", {mean, 1e-3, std::int64_t{1}});
  const ValueId inverse = small.call("aten::rsqrt", {shifted});
  ValueId y = small.call("aten::mul.Tensor", {x, inverse});
  if (c.cast) y = small.call("aten::to.dtype", {y, DType::kFloat64, false, false, Arg()});
  if (c.weighted) y = small.call("aten::mul.Tensor", {w, y});
  if (c.seen_elsewhere) y = small.call("aten::add.Tensor", {y, mean, std::int64_t{1}});
  return y;
}

}  // namespace

TEST_CASE("an activation that is only multiplied is compiled with the product") {
  const std::string op = GENERATE("aten::silu", "aten::gelu", "aten::mish");
  const bool gate_first = GENERATE(false, true), gate_trained = GENERATE(true, false),
             x_trained = GENERATE(true, false);
  if (!gate_trained && !x_trained) return;
  CAPTURE(op, gate_first, gate_trained, x_trained);
  SmallGraph small;
  const ValueId x = small.weight("x", {5, 7, 9}, x_trained), gate = small.weight("gate", {5, 7, 9}, gate_trained);
  const ValueId f = op == "aten::gelu" ? small.call(op, {x, std::string("none")}) : small.call(op, {x});
  set_shape(small, f, {5, 7, 9});
  small.call("aten::mul.Tensor", gate_first ? std::vector<Arg>{gate, f} : std::vector<Arg>{f, gate});
  CHECK(kernels_of(small, op) == 0);
  const Outcome outcome = run_training(small);
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    CHECK(outcome.output[i] == Approx(activation(op, small.weights[0][i]) * small.weights[1][i]).margin(1e-12));
  }
  check_gradients(small);
  check_float(small);
}

TEST_CASE("of two activations that are multiplied one is compiled with the product, the other by itself") {
  const std::string first = GENERATE("aten::silu", "aten::mish"), second = GENERATE("aten::silu", "aten::gelu");
  CAPTURE(first, second);
  SmallGraph small;
  const ValueId x = small.weight("x", {5, 7}), y = small.weight("y", {5, 7});
  const ValueId f = small.call(first, {x});
  const ValueId g = second == "aten::gelu" ? small.call(second, {y, std::string("none")}) : small.call(second, {y});
  for (const ValueId id : {f, g}) set_shape(small, id, {5, 7});
  small.call("aten::mul.Tensor", {f, g});
  const Outcome outcome = run_training(small);
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    const double wanted = activation(first, small.weights[0][i]) * activation(second, small.weights[1][i]);
    CHECK(outcome.output[i] == Approx(wanted).margin(1e-12));
  }
  check_gradients(small);
  check_float(small);
}

TEST_CASE("an activation that something else reads, or that is multiplied with another shape, is compiled by itself") {
  const bool read_twice = GENERATE(false, true);
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 6});
  const ValueId gate = small.weight("gate", read_twice ? Shape{4, 6} : Shape{1, 6});
  const ValueId f = small.call("aten::silu", {x});
  set_shape(small, f, {4, 6});
  const ValueId product = small.call("aten::mul.Tensor", {f, gate});
  if (read_twice) small.call("aten::add.Tensor", {product, f, std::int64_t{1}});
  CHECK(kernels_of(small, "aten::silu") > 0);
  check_gradients(small);
}

TEST_CASE("gates whose inputs others read too get the sum of the gradients") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 16}), gate = small.weight("gate", {4, 16});
  const ValueId f = small.call("aten::silu", {x});
  set_shape(small, f, {4, 16});
  const ValueId product = small.call("aten::mul.Tensor", {f, gate});
  const ValueId more = small.call("aten::add.Tensor", {product, x, std::int64_t{1}});
  small.call("aten::mul.Tensor", {more, gate});
  CHECK(kernels_of(small, "aten::silu") == 0);
  check_gradients(small);
}

TEST_CASE("an RMS norm that a model writes out is one kernel") {
  const RmsCase c = GENERATE(values<RmsCase>({{}, {false}, {true, true}, {true, false, true, "aten::square"}}));
  const std::int64_t n = GENERATE(3, 16, 21);
  CAPTURE(c.weighted, c.cast, c.square, n);
  SmallGraph small;
  const ValueId x = small.weight("x", {6, 5, n}), w = small.weight("w", {n}, c.weighted);
  write_rms_norm(small, x, w, c);
  CHECK(kernels_of(small, "aten::rsqrt") == 0);
  const Outcome outcome = run_training(small);
  const auto size = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    double square = 0;
    for (std::size_t k = 0; k < size; ++k) square += std::pow(small.weights[0][i / size * size + k], 2);
    const double factor = c.weighted ? small.weights[1][i % size] : 1;
    CHECK(outcome.output[i] ==
          Approx(small.weights[0][i] / std::sqrt(square / static_cast<double>(n) + 1e-3) * factor));
  }
  check_gradients(small);
  check_float(small, 1e-4);
}

TEST_CASE("a norm whose mean square something else reads is compiled call by call") {
  SmallGraph small;
  const ValueId x = small.weight("x", {6, 8}), w = small.weight("w", {8});
  write_rms_norm(small, x, w, {.seen_elsewhere = true});
  CHECK(kernels_of(small, "aten::rsqrt") > 0);
  check_gradients(small);
}

TEST_CASE("aten::rms_norm, with and without weight and eps") {
  const bool weighted = GENERATE(false, true), eps = GENERATE(false, true);
  SmallGraph small;
  const ValueId x = small.weight("x", {70, 9});
  const Arg w = weighted ? Arg(small.weight("w", {9})) : Arg();
  small.call("aten::rms_norm", {x, Ints{9}, w, eps ? Arg(0.5) : Arg()});
  const Outcome outcome = run_training(small);
  double square = 0;
  for (std::size_t k = 0; k < 9; ++k) square += small.weights[0][k] * small.weights[0][k] / 9;
  const double least = eps ? 0.5 : std::numeric_limits<double>::epsilon();
  CHECK(outcome.output[2] ==
        Approx(small.weights[0][2] / std::sqrt(square + least) * (weighted ? small.weights[1][2] : 1)));
  check_gradients(small);
  check_float(small, 1e-4);
}

TEST_CASE("a rotary embedding is one kernel, of heads that lie apart too") {
  const bool transposed = GENERATE(false, true), per_sample = GENERATE(false, true), chunks = GENERATE(false, true);
  const bool turned_first = GENERATE(false, true);
  CAPTURE(transposed, per_sample, chunks, turned_first);
  const std::int64_t heads = 2, length = 3, n = 8, half = n / 2, batch = 2;
  SmallGraph small;
  ValueId x = small.weight("x", transposed ? Shape{batch, length, heads, n} : Shape{batch, heads, length, n});
  const ValueId cos = small.weight("cos", {per_sample ? batch : 1, 1, length, n}, false);
  const ValueId sin = small.weight("sin", {per_sample ? batch : 1, 1, length, n}, false);
  if (transposed) {
    x = small.call("aten::transpose.int", {x, std::int64_t{1}, std::int64_t{2}});
    set_shape(small, x, {batch, heads, length, n});
  }
  const ValueId straight = small.call("aten::mul.Tensor", {x, cos});
  ValueId first = kNoValue, second = kNoValue;
  if (chunks) {
    first = small.call("aten::chunk", {x, std::int64_t{2}, std::int64_t{-1}}, 2);
    second = small.output(1);
  } else {
    first = small.call("aten::slice.Tensor", {x, std::int64_t{3}, std::int64_t{0}, half, std::int64_t{1}});
    second = small.call("aten::slice.Tensor",
                        {x, std::int64_t{3}, half, std::numeric_limits<std::int64_t>::max(), std::int64_t{1}});
  }
  const ValueId negated = small.call("aten::neg", {second});
  const ValueId turned = small.call("aten::cat", {std::vector<ValueId>{negated, first}, std::int64_t{-1}});
  set_shape(small, turned, {batch, heads, length, n});
  const ValueId product = small.call("aten::mul.Tensor", {turned, sin});
  const ValueId y = small.call("aten::add.Tensor", turned_first ? std::vector<Arg>{product, straight, std::int64_t{1}}
                                                                : std::vector<Arg>{straight, product, std::int64_t{1}});
  set_shape(small, y, {batch, heads, length, n});
  CHECK(kernels_of(small, "aten::neg") == 0);
  const Outcome outcome = run_training(small);
  for (std::int64_t i = 0; i < batch * heads * length * n; ++i) {
    const std::int64_t d = i % n, t = i / n % length, h = i / n / length % heads, s = i / n / length / heads;
    const auto at = [&](std::int64_t e) {
      const std::int64_t row = transposed ? (s * length + t) * heads + h : (s * heads + h) * length + t;
      return small.weights[0][static_cast<std::size_t>(row * n + e)];
    };
    const auto angle = [&](std::size_t which) {
      return small.weights[which][static_cast<std::size_t>(((per_sample ? s : 0) * length + t) * n + d)];
    };
    const double other = d < half ? -at(d + half) : at(d - half);
    CHECK(outcome.output[static_cast<std::size_t>(i)] == Approx(at(d) * angle(1) + other * angle(2)).margin(1e-12));
  }
  check_gradients(small);
  check_float(small);
}

TEST_CASE("what only resembles a rotary embedding is compiled call by call") {
  const int change = GENERATE(0, 1, 2);  // halves the other way round; a scaled sum; halves of another tensor
  CAPTURE(change);
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 8}), other = small.weight("other", {3, 8}, change == 2);
  const ValueId cos = small.weight("cos", {3, 8}, false), sin = small.weight("sin", {3, 8}, false);
  const ValueId straight = small.call("aten::mul.Tensor", {x, cos});
  const ValueId from = change == 2 ? other : x;
  const auto half = [&](std::int64_t begin) {
    return small.call("aten::slice.Tensor", {from, std::int64_t{1}, begin, begin + 4, std::int64_t{1}});
  };
  const ValueId first = half(change == 0 ? 4 : 0), second = half(change == 0 ? 0 : 4);
  const ValueId negated = small.call("aten::neg", {second});
  const ValueId turned = small.call("aten::cat", {std::vector<ValueId>{negated, first}, std::int64_t{1}});
  set_shape(small, turned, {3, 8});
  const ValueId product = small.call("aten::mul.Tensor", {turned, sin});
  set_shape(small, small.call("aten::add.Tensor", {straight, product, std::int64_t{change == 1 ? 2 : 1}}), {3, 8});
  CHECK(kernels_of(small, "aten::neg") > 0);
  check_gradients(small);
}

TEST_CASE("gradients of repeated elements are summed, whatever dimensions are repeated") {
  const Shape shape =
      GENERATE(Shape{1, 5, 6, 7}, Shape{4, 1, 6, 7}, Shape{4, 5, 1, 7}, Shape{4, 5, 6, 1}, Shape{4, 1, 6, 1},
               Shape{1, 5, 1, 7}, Shape{1, 1, 1, 1}, Shape{1, 1, 6, 1}, Shape{40, 1, 33, 1});
  CAPTURE(to_text(shape));
  SmallGraph small;
  const Shape whole = shape.front() == 40 ? Shape{40, 3, 33, 20} : Shape{4, 5, 6, 7};
  const ValueId x = small.weight("x", whole), y = small.weight("y", shape);
  small.call("aten::mul.Tensor", {x, y});
  check_gradients(small);
  check_float(small);
}

}  // namespace hfta::fusion::cpu::testing
