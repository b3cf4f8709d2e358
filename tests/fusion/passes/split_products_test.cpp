// A product over something repeated is computed once and added everywhere: same numbers, fewer of them.
#include <algorithm>
#include <numeric>

#include "fusion/eager/program.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 3;

// A concatenation of inputs, some of them repeated first, and a product over its channels.
struct Case {
  std::string name;
  std::string repeat;        // "aten::expand", "aten::repeat"
  std::vector<Shape> small;  // of the inputs
  std::vector<Shape> large;  // what each is repeated to
  std::int64_t dim;          // of the channels
  std::string product;       // "aten::linear", "aten::conv1d"
  std::size_t products;      // there are afterwards
  std::size_t repeated = 1;  // products of something that was repeated
};

class Written {
 public:
  ValueId value(const std::string& name, Shape shape) {
    graph.values.push_back({name, std::move(shape), DType::kFloat64, false});
    return static_cast<ValueId>(graph.values.size()) - 1;
  }
  ValueId call(const std::string& op, std::vector<Arg> args, Shape shape) {
    const ValueId out = value(op, std::move(shape));
    graph.nodes.push_back({op, std::move(args), {out}, "model", "test"});
    graph.outputs = {out};
    return out;
  }
  ValueId weight(const std::string& name, const Shape& shape) {
    Weight w;
    w.name = name;
    w.shape = shape;
    w.dtype = DType::kFloat64;
    w.value = value(name, shape);
    graph.weights.push_back(w);
    return w.value;
  }
  ValueId input(const Shape& shape) {
    graph.inputs.push_back(value("x", shape));
    return graph.inputs.back();
  }
  Graph graph;
};

Written joined_from(const Case& c) {
  Written w;
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < c.small.size(); ++i) {
    ValueId x = w.input(c.small[i]);
    if (c.small[i] != c.large[i]) {
      std::vector<std::int64_t> sizes;
      const std::size_t missing = c.large[i].size() - c.small[i].size();
      for (std::size_t d = 0; d < c.large[i].size(); ++d) {
        const std::int64_t to = c.large[i][d] == kBatch ? kSamples : c.large[i][d];
        const bool same = d >= missing && c.small[i][d - missing] == c.large[i][d];
        sizes.push_back(c.repeat == "aten::repeat" && same ? 1 : to);
      }
      std::vector<Arg> args = {x, sizes};
      if (c.repeat == "aten::expand") args.emplace_back(false);
      x = w.call(c.repeat, args, c.large[i]);
    }
    parts.push_back(x);
  }
  Shape whole = c.large.front();
  const auto dim = static_cast<std::size_t>(c.dim < 0 ? c.dim + static_cast<std::int64_t>(whole.size()) : c.dim);
  whole[dim] = 0;
  for (const Shape& shape : c.large) whole[dim] += shape[dim];
  static_cast<void>(w.call("aten::cat", {parts, c.dim}, whole));
  return w;
}

Graph graph_of(const Case& c) {
  Written w = joined_from(c);
  const ValueId joined = w.graph.outputs[0];
  Shape sizes = w.graph.values[static_cast<std::size_t>(joined)].shape;
  const bool linear = c.product == "aten::linear";
  std::int64_t& channels = linear ? sizes.back() : sizes[1];
  Shape weight = {5, channels};
  weight.resize(linear ? 2 : sizes.size(), 1);
  channels = 5;
  const ValueId matrix = w.weight("weight", weight), bias = w.weight("bias", {5});
  static_cast<void>(w.call(c.product, {joined, matrix, bias}, sizes));
  return with_complete_arguments(w.graph);
}

SpecializedGraph whole_reading(const Graph& graph) {
  SpecializedGraph reading{graph, std::vector<int>(graph.nodes.size())};
  std::iota(reading.index.begin(), reading.index.end(), 0);
  return reading;
}

std::vector<const Node*> nodes_of(const SpecializedGraph& reading, const std::string& op) {
  std::vector<const Node*> found;
  for (const Node& node : reading.graph.nodes) {
    if (node.op == op) found.push_back(&node);
  }
  return found;
}

at::Tensor random_of(Shape shape, std::uint64_t seed) {
  for (std::int64_t& size : shape) size = size == kBatch ? kSamples : size;
  return counted_normal(shape, DType::kFloat64, seed);
}

// The output and the gradients of its sum of squares.
std::vector<at::Tensor> answers(const SpecializedGraph& reading, int slots) {
  const at::AutoGradMode record(true);
  const Graph& graph = reading.graph;
  const Program program(reading, std::vector<bool>(graph.weights.size(), true), chunked(std::max(1, slots)), at::kCPU);
  std::vector<at::Tensor> weights, inputs;
  for (const Weight& weight : graph.weights) {
    Shape shape = weight.shape;
    if (slots > 0) shape.insert(shape.begin(), slots);
    weights.push_back(random_of(shape, 50 + weights.size()).requires_grad_());
  }
  for (const ValueId id : graph.inputs) {
    inputs.push_back(random_of(graph.values[static_cast<std::size_t>(id)].shape, 60 + inputs.size()));
  }
  const ValueEnv shared = program.share(inputs, weights);
  const ValueEnv* const flow = &shared;
  const std::vector<SlotRandom> random(static_cast<std::size_t>(std::max(1, slots)));
  const std::vector<std::vector<double>> hypers(random.size());
  const HostNumbers numbers(random, hypers);
  std::vector<at::Tensor> out = {program.run({&flow, 1}, weights, {slots, numbers, at::kCPU})};
  out[0].square().sum().backward();
  for (const at::Tensor& weight : weights) out.push_back(weight.grad());
  return out;
}

}  // namespace

TEST_CASE("a product over repeated channels becomes a sum, with the same values and gradients") {
  const Case c = GENERATE(values<Case>({
      {"a cloud's features beside its points'",
       "aten::expand",
       {{kBatch, 1, 20}, {kBatch, 7, 4}},
       {{kBatch, 7, 20}, {kBatch, 7, 4}},
       -1,
       "aten::linear",
       2},
      {"the same by repeat and a convolution",
       "aten::repeat",
       {{kBatch, 20, 1}, {kBatch, 4, 7}},
       {{kBatch, 20, 7}, {kBatch, 4, 7}},
       1,
       "aten::conv1d",
       2},
      {"a condition beside an image",
       "aten::expand",
       {{kBatch, 3, 4, 5}, {kBatch, 16, 1, 1}},
       {{kBatch, 3, 4, 5}, {kBatch, 16, 4, 5}},
       1,
       "aten::conv2d",
       2},
      {"pairs",
       "aten::expand",
       {{kBatch, 6, 1, 16}, {kBatch, 1, 6, 16}},
       {{kBatch, 6, 6, 16}, {kBatch, 6, 6, 16}},
       3,
       "aten::linear",
       2,
       2},
      {"one thing for all samples, of lower rank",
       "aten::expand",
       {{16}, {kBatch, 8}},
       {{kBatch, 16}, {kBatch, 8}},
       -1,
       "aten::linear",
       2},
      {"neighbours that are not repeated stay together",
       "aten::expand",
       {{kBatch, 7, 2}, {kBatch, 7, 3}, {kBatch, 1, 17}, {kBatch, 7, 4}},
       {{kBatch, 7, 2}, {kBatch, 7, 3}, {kBatch, 7, 17}, {kBatch, 7, 4}},
       2,
       "aten::linear",
       3},
  }));
  INFO(c.name);
  const SpecializedGraph whole = whole_reading(graph_of(c)), split = with_split_products(whole);
  const std::vector<const Node*> products = nodes_of(split, c.product);
  REQUIRE(products.size() == c.products);
  const auto of_inputs = std::count_if(products.begin(), products.end(), [&](const Node* node) {
    const auto& inputs = split.graph.inputs;
    const auto at = std::find(inputs.begin(), inputs.end(), std::get<ValueId>(node->args[0]));
    return at != inputs.end() && c.small[static_cast<std::size_t>(at - inputs.begin())] !=
                                     c.large[static_cast<std::size_t>(at - inputs.begin())];
  });
  CHECK(static_cast<std::size_t>(of_inputs) == c.repeated);
  CHECK(split.index.size() == split.graph.nodes.size());
  const int slots = GENERATE(0, 2);
  const std::vector<at::Tensor> expected = answers(whole, slots), found = answers(split, slots);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[i].sizes() == expected[i].sizes());
    CHECK(relative_difference(found[i], expected[i]) <= 1e-13);
  }
}

TEST_CASE("a product stays whole where splitting it wins nothing") {
  const Case c = GENERATE(values<Case>({
      {"nothing is repeated",
       "",
       {{kBatch, 7, 20}, {kBatch, 7, 4}},
       {{kBatch, 7, 20}, {kBatch, 7, 4}},
       -1,
       "aten::linear",
       1},
      {"few channels are",
       "aten::expand",
       {{kBatch, 1, 15}, {kBatch, 7, 4}},
       {{kBatch, 7, 15}, {kBatch, 7, 4}},
       -1,
       "aten::linear",
       1},
      {"all are, over the same dimension",
       "aten::expand",
       {{kBatch, 1, 20}, {kBatch, 1, 20}},
       {{kBatch, 7, 20}, {kBatch, 7, 20}},
       -1,
       "aten::linear",
       1},
      {"joined over another dimension",
       "aten::expand",
       {{kBatch, 1, 20}, {kBatch, 7, 20}},
       {{kBatch, 7, 20}, {kBatch, 7, 20}},
       1,
       "aten::linear",
       1},
      {"repeated more than once along a dimension that is there",
       "aten::repeat",
       {{kBatch, 2, 20}, {kBatch, 4, 3}},
       {{kBatch, 4, 20}, {kBatch, 4, 3}},
       -1,
       "aten::linear",
       1},
  }));
  INFO(c.name);
  const SpecializedGraph whole = whole_reading(graph_of(c));
  CHECK(with_split_products(whole).graph.nodes.size() == whole.graph.nodes.size());
}

TEST_CASE("a product stays whole where what it reads is written in between, or is no pointwise one") {
  const Case c{
      "", "aten::expand", {{kBatch, 16, 1}, {kBatch, 4, 7}}, {{kBatch, 16, 7}, {kBatch, 4, 7}}, 1, "aten::conv1d", 2};
  Graph graph = graph_of(c);
  REQUIRE(nodes_of(with_split_products(whole_reading(graph)), c.product).size() == 2);
  const auto double_before = [&](int nodes_from_end, ValueId id) {
    graph.nodes.insert(graph.nodes.end() - nodes_from_end, {"aten::mul_.Scalar", {id, 2.0}, {kNoValue}, "", ""});
  };
  SECTION("the repeated one, behind the concatenation") { double_before(1, graph.inputs[0]); }
  SECTION("the repeated one, before the concatenation") { double_before(2, graph.inputs[0]); }
  SECTION("the other one") { double_before(1, graph.inputs[1]); }
  SECTION("the concatenation") { double_before(1, std::get<ValueId>(graph.nodes.back().args[0])); }
  SECTION("padded: at the edge the repeated ones differ") { graph.nodes.back().args[4] = std::vector<std::int64_t>{1}; }
  SECTION("strided") { graph.nodes.back().args[3] = std::vector<std::int64_t>{2}; }
  SECTION("computed without gradients") { graph.nodes.back().no_gradient = true; }
  graph = with_complete_arguments(graph);
  CHECK(nodes_of(with_split_products(whole_reading(graph)), c.product).size() == 1);
}

TEST_CASE("what is written in place before it is repeated does not keep a product whole") {
  const Case c{
      "", "aten::expand", {{kBatch, 1, 16}, {kBatch, 7, 4}}, {{kBatch, 7, 16}, {kBatch, 7, 4}}, -1, "aten::linear", 2};
  Graph graph = graph_of(c);
  graph.nodes.insert(graph.nodes.begin(), {"aten::relu_", {graph.inputs[0]}, {kNoValue}, "", ""});
  CHECK(nodes_of(with_split_products(whole_reading(with_complete_arguments(graph))), c.product).size() == 2);
}

}  // namespace hfta::fusion::testing
