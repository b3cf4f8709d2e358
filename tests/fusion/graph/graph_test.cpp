#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "layer_text.hpp"

namespace hfta::fusion::test {
namespace {

struct WeightCase {
  std::string name, shape;
  Init::Kind kind;
  double scale;
  bool trained;
};

TEST_CASE("weights have PyTorch's names, shapes and first values", "[graph]") {
  const Graph net = parse_graph(
      "conv2d 4 6 [3,5] groups=2 as=stem | batch_norm2d 6 | conv2d 6 2 1 bias=false | flatten | layer_norm 8 | linear "
      "8 3",
      {kBatch, 4, 4, 6});
  const double stem = 1 / std::sqrt(2.0 * 3 * 5);
  const std::vector<WeightCase> wanted = {
      {"stem.weight", "[6, 2, 3, 5]", Init::Kind::kUniform, stem, true},
      {"stem.bias", "[6]", Init::Kind::kUniform, stem, true},
      {"layers.1.weight", "[6]", Init::Kind::kOnes, 0, true},
      {"layers.1.bias", "[6]", Init::Kind::kZeros, 0, true},
      {"layers.1.running_mean", "[6]", Init::Kind::kZeros, 0, false},
      {"layers.1.running_var", "[6]", Init::Kind::kOnes, 0, false},
      {"layers.2.weight", "[2, 6, 1, 1]", Init::Kind::kUniform, 1 / std::sqrt(6.0), true},
      {"layers.4.weight", "[8]", Init::Kind::kOnes, 0, true},
      {"layers.4.bias", "[8]", Init::Kind::kZeros, 0, true},
      {"layers.5.weight", "[3, 8]", Init::Kind::kUniform, 1 / std::sqrt(8.0), true},
      {"layers.5.bias", "[3]", Init::Kind::kUniform, 1 / std::sqrt(8.0), true},
  };
  REQUIRE(net.weights.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Weight& weight = net.weights[i];
    CAPTURE(weight.name);
    CHECK(weight.name == wanted[i].name);
    CHECK(to_text(weight.shape) == wanted[i].shape);
    CHECK(weight.init.kind == wanted[i].kind);
    CHECK(weight.init.scale == Approx(wanted[i].scale).epsilon(1e-15));
    CHECK(weight.trained == wanted[i].trained);
    CHECK(net.values[static_cast<std::size_t>(weight.value)].name == weight.name);
    CHECK(net.values[static_cast<std::size_t>(weight.value)].shape == weight.shape);
  }
  CHECK(net.parameter_count() == 6 * 30 + 6 + 12 + 12 + 16 + 24 + 3);
}

TEST_CASE("a graph's values are defined before they are used, once", "[graph]") {
  const Graph net = parse_graph(
      "linear 4 4 as=a | dropout 0.1 | adaptive_max_pool1d 4 as=unused | add a input | concat a | linear 4 1",
      {kBatch, 2, 4});
  CHECK(net.inputs == std::vector<ValueId>{0});
  std::set<ValueId> known(net.inputs.begin(), net.inputs.end());
  for (const Weight& weight : net.weights) CHECK(known.insert(weight.value).second);
  for (const Node& node : net.nodes) {
    CAPTURE(node.path);
    for (const Arg& arg : node.args) {
      if (const auto* id = std::get_if<ValueId>(&arg)) CHECK(known.contains(*id));
      if (const auto* list = std::get_if<std::vector<ValueId>>(&arg)) {
        for (const ValueId id : *list) CHECK(known.contains(id));
      }
    }
    for (const ValueId id : node.outputs) CHECK(known.insert(id).second);
  }
  CHECK(known.contains(net.outputs[0]));
  CHECK(known.size() == net.values.size());
  CHECK(net.values.back().dtype == DType::kFloat32);
  CHECK(net.nodes[0].where == "net:1");
}

TEST_CASE("dtypes reach inputs, weights and outputs, not indices", "[graph]") {
  const Graph net = parse_graph("linear 4 4 | adaptive_max_pool1d 2", {kBatch, 2, 4}, DType::kFloat64);
  CHECK(net.values[0].dtype == DType::kFloat64);
  for (const Weight& weight : net.weights) CHECK(weight.dtype == DType::kFloat64);
  CHECK(net.values[static_cast<std::size_t>(net.outputs[0])].dtype == DType::kFloat64);
  CHECK(net.values.back().dtype == DType::kInt64);
}

TEST_CASE("signatures differ exactly by what cannot train side by side", "[graph]") {
  const Shape input{kBatch, 8};
  const std::string net = "linear 8 4 | leaky_relu 0.1 | dropout 0.3 | linear 4 2";
  const std::string signature = parse_graph(net, input).signature();
  CHECK(parse_graph("linear 8 4 | leaky_relu 0.1 | dropout 0.7 | linear 4 2", input).signature() == signature);
  auto moved = parse_layers(net);
  moved[0].where = "elsewhere:7";
  CHECK(build_graph(moved, input, DType::kFloat32).signature() == signature);
  CHECK(parse_graph(
            "linear in_features=8 out_features=4 bias=true | leaky_relu negative_slope=0.1 | dropout 0 | linear 4 2",
            input)
            .signature() == signature);

  const std::vector<std::string> others = {
      "linear 8 5 | leaky_relu 0.1 | dropout 0.3 | linear 5 2",        // width
      "linear 8 4 | leaky_relu 0.2 | dropout 0.3 | linear 4 2",        // a literal
      "linear 8 4 | relu | dropout 0.3 | linear 4 2",                  // an op
      "linear 8 4 | leaky_relu 0.1 | linear 4 2",                      // a layer fewer
      "linear 8 4 | dropout 0.3 | leaky_relu 0.1 | linear 4 2",        // order
      "linear 8 4 | leaky_relu 0.1 | dropout 0.3 | linear 4 2 false",  // no bias
      "linear 8 4 as=a | leaky_relu 0.1 | dropout 0.3 | linear 4 2",   // weights' names
  };
  for (const std::string& other : others) {
    CAPTURE(other);
    CHECK(parse_graph(other, input).signature() != signature);
  }
  CHECK(parse_graph(net, input, DType::kFloat64).signature() != signature);
  CHECK(parse_graph(net, {kBatch, 3, 8}).signature() != signature);
  const std::string skip = "linear 8 8 as=a | relu as=b | linear 8 8 | ";
  CHECK(parse_graph(skip + "add a", input).signature() != parse_graph(skip + "add b", input).signature());
}

TEST_CASE("every field of a graph but hypers' values and where reaches the signature", "[graph]") {
  const Graph base = parse_graph("linear 8 4 | dropout 0.3", {kBatch, 8});
  std::vector<Graph> changed(9, base);
  changed[0].values[1].name += "x";
  changed[1].values[1].shape.push_back(1);
  changed[2].nodes[0].path += "x";
  changed[3].weights[0].name += "x";
  changed[4].weights[0].init.scale *= 2;
  changed[5].weights[0].init.kind = Init::Kind::kNormal;
  changed[6].weights[0].trained = false;
  changed[7].hypers[0].path += "x";
  changed[8].outputs = {0};
  for (std::size_t i = 0; i < changed.size(); ++i) {
    CAPTURE(i);
    CHECK(changed[i].signature() != base.signature());
  }
  // An integer, a float and a value of the same digits are different arguments.
  std::set<std::string> signatures;
  for (const Arg& arg :
       {Arg(ValueId{1}), Arg(std::int64_t{1}), Arg(1.0), Arg(true), Arg(std::string("1")), Arg(), Arg(HyperRef{1}),
        Arg(std::vector<std::int64_t>{1}), Arg(std::vector<ValueId>{1}), Arg(Complex{1, 0}), Arg(Complex{0, 1})}) {
    Graph graph = base;
    graph.nodes[0].args[1] = arg;
    signatures.insert(graph.signature());
  }
  CHECK(signatures.size() == 11);
}

TEST_CASE("sizes that 64 bits do not hold are an error", "[graph]") {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62, kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(elements_of({kBatch, 3, -2}, 4) == 4 * 3 * 8);
  CHECK(elements_of({kHalf}, 1) == kHalf);
  CHECK(bytes_of({kBatch, 3}, DType::kFloat64, 2) == 48);
  CHECK_THROWS_WITH((void)elements_of({kHalf, 2}, 1),
                    "model: found a tensor [4611686018427387904, 2] for a batch of 1, beyond any machine");
  CHECK_THROWS_AS((void)elements_of({kBatch, 3}, kHalf), Error);
  CHECK_THROWS_AS((void)elements_of({kLeast}, 1), Error);
  CHECK_THROWS_AS((void)bytes_of({kHalf}, DType::kFloat32, 1), Error);
}

TEST_CASE("shapes and dtypes read as users write them", "[graph]") {
  CHECK(to_text(Shape{kBatch, 16, 8}) == "[N, 16, 8]");
  CHECK(to_text(Shape{}) == "[]");
  CHECK(std::string(name_of(DType::kFloat64)) == "float64");
  CHECK(std::string(name_of(DType::kFloat32)) == "float32");
  CHECK(std::string(name_of(DType::kInt64)) == "int64");
}

TEST_CASE("only dropout's p is fusible", "[layers]") {
  for (const std::string& kind : layer_kinds()) {
    for (const LayerArgInfo& arg : layer_args(kind)) {
      CAPTURE(kind, arg.name);
      CHECK(arg.fusible == (kind == "dropout" && arg.name == "p"));
    }
  }
  CHECK(layer_args("no_such_kind").empty());
  CHECK(layer_args("relu").empty());
  const Graph net = parse_graph("linear 4 4 | dropout 0.25", {kBatch, 4});
  REQUIRE(net.hypers.size() == 1);
  CHECK(net.hypers[0].path == "layers.1.p");
  CHECK(net.hypers[0].value == 0.25);
}

}  // namespace
}  // namespace hfta::fusion::test
