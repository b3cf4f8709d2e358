#include "fusion/pt2/options.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <span>

#include "base/random.hpp"
#include "pt2_text.hpp"

namespace hfta::fusion::test {
namespace {

std::string trained(const Graph& graph) {
  std::string names;
  for (const Weight& weight : graph.weights) {
    if (weight.trained) names += weight.name + " ";
  }
  return names;
}

std::string name_of_output(const Graph& graph) {
  return graph.values.at(static_cast<std::size_t>(graph.outputs[0])).name;
}

struct FreezeCase {
  std::vector<std::string> patterns;
  std::string trained;
};

TEST_CASE("what is frozen is not trained", "[pt2]") {
  const ExportedModel model = ExportedModel::read(golden("torch-2.11"));
  const FreezeCase one = GENERATE(
      FreezeCase{{"conv.*"}, "norm.weight norm.bias first.weight first.bias second.bias head.weight "},
      FreezeCase{{"conv"}, "norm.weight norm.bias first.weight first.bias second.bias head.weight "},
      FreezeCase{{"*.bias"}, "conv.weight norm.weight first.weight head.weight "},
      FreezeCase{{"second.weight"}, "conv.weight conv.bias norm.weight norm.bias first.bias second.bias head.weight "},
      FreezeCase{{"*on*", "first", "norm"}, "head.weight "},
      FreezeCase{{"unused"},
                 "conv.weight conv.bias norm.weight norm.bias first.weight first.bias second.bias head.weight "},
      FreezeCase{{"*"}, ""});
  ImportOptions options;
  options.freeze = one.patterns;
  CHECK(trained(model.graph(options)) == one.trained);
}

struct BindCase {
  std::string archive, path, bound;
};

TEST_CASE("a binding makes literals differ between trials", "[pt2]") {
  const BindCase one = GENERATE(
      BindCase{"torch-2.11", "drop.p", "drop.p "}, BindCase{"torch-2.11", "norm.*", "norm.momentum norm.eps "},
      BindCase{"attention", "drop.p", "drop.p drop.p "}, BindCase{"recurrent", "lstm.dropout", "lstm.dropout "},
      BindCase{"scopes", "(model).other", "(model).other "});
  ImportOptions options;
  options.bind = {{one.path, 0.625, ""}};
  const Graph graph = ExportedModel::read(golden(one.archive)).graph(options);
  std::string bound;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (std::holds_alternative<HyperRef>(node.args[i])) bound += node.path + "." + node.names[i] + " ";
    }
  }
  CHECK(bound == one.bound);
  REQUIRE(graph.hypers.size() == 1);
  CHECK(graph.hypers[0].path == one.path);
  CHECK(graph.hypers[0].value == 0.625);
}

struct ErrorCase {
  std::string archive;
  ImportOptions options;
  std::string message;
};

ImportOptions freezing(const std::string& pattern) {
  ImportOptions options;
  options.freeze = {pattern};
  options.where = "digits.yaml:20";
  return options;
}

ImportOptions binding(std::vector<std::string> paths) {
  ImportOptions options;
  for (std::string& path : paths) options.bind.push_back({std::move(path), 0.5, "digits.yaml:24"});
  return options;
}

ImportOptions output(std::variant<std::monostate, std::int64_t, std::string> which) {
  ImportOptions options;
  options.output = std::move(which);
  options.where = "digits.yaml:30";
  return options;
}

TEST_CASE("options that mean nothing are errors that name the nearest", "[pt2]") {
  const ErrorCase one = GENERATE(
      ErrorCase{"torch-2.11", freezing("frist"),
                "digits.yaml:20: found no parameter 'frist' to freeze; did you mean 'first'?"},
      ErrorCase{"torch-2.11", freezing("norm.running_mean"),
                "digits.yaml:20: found no parameter 'norm.running_mean' to freeze; "
                "there are for example conv, conv.bias, conv.weight, first, first.bias"},
      ErrorCase{"torch-2.11", binding({"drop.q"}),
                "digits.yaml:24: found nothing to bind at 'drop.q'; did you mean 'drop.p'?"},
      ErrorCase{"torch-2.11", binding({"conv.stride"}),
                "digits.yaml:24: cannot bind 'conv.stride': it is no factor or rate, but "
                "changes shapes or is computed"},
      ErrorCase{"scopes", binding({"(model).chunks"}),
                "digits.yaml:24: cannot bind '(model).chunks': it is no factor or rate, but "
                "changes shapes or is computed"},
      ErrorCase{"torch-2.11", binding({"*.p", "drop.p"}),
                "digits.yaml:24: cannot bind 'drop.p': another pattern binds it already"},
      ErrorCase{"attention", output(std::int64_t{2}),
                "digits.yaml:30: found output 2, wanted one of 0 (logits), 1 (pooled.0)"},
      ErrorCase{"attention", output(std::int64_t{-1}),
                "digits.yaml:30: found output -1, wanted one of 0 (logits), 1 (pooled.0)"},
      ErrorCase{"attention", output("logit"),
                "digits.yaml:30: the model has no output 'logit'; did you mean 'logits'?"},
      ErrorCase{"attention", output("x"), "digits.yaml:30: the model has no output 'x'; there are logits, pooled.0"});
  CHECK(error_of(ExportedModel::read(golden(one.archive)), one.options) == one.message);
}

TEST_CASE("an output is chosen by its place or its name", "[pt2]") {
  const ExportedModel model = ExportedModel::read(golden("attention"));
  const auto name = [&](const ImportOptions& options) { return name_of_output(model.graph(options)); };
  CHECK(name({}) == "linear_2");
  CHECK(name(output(std::int64_t{1})) == "mean");
  CHECK(name(output("pooled.0")) == "mean");
}

TEST_CASE("an output's place is that in what the model returns, whatever is no tensor there", "[pt2]") {
  const ExportedModel model = ExportedModel::read(golden("outputs"));
  const auto name = [&](const ImportOptions& options) { return name_of_output(model.graph(options)); };
  CHECK(name({}) == "sin");
  CHECK(name(output(std::int64_t{1})) == "sin");
  CHECK(name(output("2.1")) == "tan");
  CHECK(name(output(std::int64_t{4})) == "exp");
  CHECK(name(output("4")) == "exp");
  CHECK(error_of(model, output(std::int64_t{2})) ==
        "digits.yaml:30: found output 2, which holds several, wanted the name of one: 2.0, 2.1");
  for (const std::int64_t none : {0, 3, 5}) {
    CHECK(error_of(model, output(none)) ==
          fmt::format("digits.yaml:30: found output {}, wanted one of 1 (1), 2 (2.0), 2 (2.1), 4 (4)", none));
  }
}

TEST_CASE("a type takes the place of the model's own, and of that alone", "[pt2]") {
  ImportOptions options;
  options.dtype = DType::kFloat64;
  const Graph lstm = ExportedModel::read(golden("recurrent")).graph(options);
  for (const Weight& weight : lstm.weights) {
    CHECK(weight.dtype == DType::kFloat64);
    CHECK(weight.stored->dtype == DType::kFloat32);
  }
  CHECK(text_of(lstm).find("dtype=float64") != std::string::npos);
  CHECK(text_of(lstm).find("float32") == std::string::npos);
  CHECK(lstm.values.at(static_cast<std::size_t>(lstm.outputs[0])).dtype == DType::kFloat64);
  // Factories that leave their type to torch would stay behind.
  CHECK(text_of(ExportedModel::read(golden("sizes")).graph(options)).find("pin_memory=false, dtype=float64") !=
        std::string::npos);
  const Graph storage = ExportedModel::read(golden("storage")).graph(options);
  CHECK(weights_text(storage) ==
        "turned [3, 2] float64 trained\nlow [3] float64\nhigh [3] float64\nwide [3] float64\nmask [3] bool\n"
        "short [3] bfloat16\nnothing [0, 2] float64\n");
}

TEST_CASE("a complex weight is held as pairs, of which the graph makes complex numbers", "[pt2]") {
  const ExportedModel model = ExportedModel::read(golden("complex"));
  const Graph graph = model.graph({});
  CHECK(weights_text(graph) ==
        "mix [6, 50, 2] float32 trained\ngain [6, 2] float32\nlayer.weight [6, 4, 2] float32 trained\n"
        "layer.bias [6, 2] float32 trained\ntable [6, 2] float32\n");
  CHECK(graph.parameter_count() == 6 * 4 + 6 + 6 * 50);
  for (const Weight& weight : graph.weights) {
    CHECK(weight.pairs);
    CHECK(weight.stored->dtype == DType::kComplex64);
    CHECK(weight.stored->shape == weight.model_shape());
    const bool joined = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return node.op == "aten::view_as_complex" && node.args.at(0) == Arg(weight.value);
    });
    CHECK(joined);
  }
  for (const StateEntry& entry : model.state()) CHECK(entry.value->dtype == DType::kComplex64);
  ImportOptions options;
  options.dtype = DType::kFloat64;
  const Graph wide = model.graph(options);
  CHECK(weights_text(wide).find("float32") == std::string::npos);
  CHECK(std::none_of(wide.values.begin(), wide.values.end(),
                     [](const Value& value) { return value.dtype == DType::kComplex64; }));
  CHECK(std::any_of(wide.values.begin(), wide.values.end(),
                    [](const Value& value) { return value.dtype == DType::kComplex128; }));
}

struct FreshCase {
  std::string archive, weight;
  Init::Kind kind;
  double scale = 0;
  int zero_row = -1;
};

// Bounds are worked out by hand from torch's documentation of each layer.
// What every draw has alike (a norm's ones) is as it is stored.
TEST_CASE("fresh weights start as PyTorch's layers do", "[pt2]") {
  using Kind = Init::Kind;
  const FreshCase one = GENERATE(values<FreshCase>({
      {"torch-2.11", "conv.weight", Kind::kUniform, 1 / 3.0},
      {"torch-2.11", "conv.bias", Kind::kUniform, 1 / 3.0},
      {"torch-2.11", "norm.weight", Kind::kStored},
      {"torch-2.11", "norm.bias", Kind::kStored},
      {"torch-2.11", "norm.running_mean", Kind::kZeros},
      {"torch-2.11", "norm.running_var", Kind::kOnes},
      {"torch-2.11", "norm.num_batches_tracked", Kind::kZeros},
      {"torch-2.11", "first.weight", Kind::kUniform, 1 / std::sqrt(8.0)},
      {"torch-2.11", "second.bias", Kind::kUniform, 1 / std::sqrt(8.0)},
      {"torch-2.11", "head.bias", Kind::kStored},
      {"torch-2.11", "scale", Kind::kStored},
      {"torch-2.11", "lifted_tensor_0", Kind::kStored},
      {"recurrent", "lstm.weight_ih_l0", Kind::kUniform, 0.5},
      {"recurrent", "lstm.bias_hh_l1", Kind::kUniform, 0.5},
      {"attention", "embed.weight", Kind::kNormal, 1, 0},
      {"attention", "attend.in_proj_weight", Kind::kUniform, std::sqrt(6.0 / (4 + 12))},
      {"attention", "attend.in_proj_bias", Kind::kStored},
      {"attention", "attend.out_proj.weight", Kind::kUniform, 0.5},
      {"attention", "attend.out_proj.bias", Kind::kStored},
      {"evaluation", "act.weight", Kind::kStored},
      {"complex", "layer.weight", Kind::kUniform, 0.5},
      {"complex", "layer.bias", Kind::kUniform, 0.5},
      {"complex", "mix", Kind::kNormal, std::sqrt(0.5)},
      {"complex", "gain", Kind::kStored},
  }));
  INFO(one.archive << " " << one.weight);
  ImportOptions options;
  options.fresh = true;
  const Graph graph = ExportedModel::read(golden(one.archive)).graph(options);
  const auto found = std::find_if(graph.weights.begin(), graph.weights.end(),
                                  [&](const Weight& weight) { return weight.name == one.weight; });
  REQUIRE(found != graph.weights.end());
  CHECK(found->init.kind == one.kind);
  CHECK(found->init.scale == Approx(one.scale));
  CHECK(found->init.zero_row == one.zero_row);
  CHECK((found->stored != nullptr) == (one.kind == Kind::kStored));
}

TEST_CASE("what no known scheme drew is refused, with its name and what to do", "[pt2]") {
  ImportOptions options;
  options.fresh = true;
  options.where = "c.yaml:3: model";
  const ExportedModel model = ExportedModel::read(golden("storage"));
  CHECK_THROWS_WITH(model.graph(options),
                    Catch::StartsWith("c.yaml:3: model: init: fresh: cannot tell what 'turned'") &&
                        Catch::Contains("jitter") && Catch::Contains("freeze: turned"));
  options.freeze = {"turned"};
  CHECK_NOTHROW(model.graph(options));
}

// A parameter of a module of PEFT's with these values, and what a fresh start makes of it.
Weight started(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  Graph graph;
  graph.values.push_back({name, shape, DType::kFloat32});
  graph.weights.push_back({.name = name, .shape = shape, .value = 0});
  graph.weights[0].stored =
      std::make_shared<const StoredTensor>(StoredTensor{shape, DType::kFloat32, {bytes.begin(), bytes.end()}});
  ImportOptions options;
  options.fresh = true;
  options.where = "c.yaml:3: model";
  pt2::set_start(graph, options, {});
  return graph.weights[0];
}

TEST_CASE("an adapter of PEFT starts anew only where the model does not lean on its first values", "[pt2]") {
  const std::string a = "base_model.model.0.lora_A.default.weight", b = "base_model.model.0.lora_B.default.weight";
  const std::vector<float> zeros(64, 0.0F);
  CHECK(started(b, {8, 8}, zeros).init.kind == Init::Kind::kZeros);
  std::vector<float> trained = zeros;
  trained[5] = 1e-3F;
  CHECK_THROWS_WITH(started(b, {8, 8}, trained),
                    Catch::StartsWith("c.yaml:3: model: init: fresh: found values in '" + b));

  CountedRandom random(3, Stream::kSimulation, 0);
  std::vector<float> usual, gaussian, neither;
  for (int i = 0; i < 512; ++i) {
    usual.push_back(static_cast<float>((2 * random.uniform() - 1) / std::sqrt(64.0)));
    gaussian.push_back(static_cast<float>(random.normal() / 8));  // init_lora_weights="gaussian": 1 / rank
    neither.push_back(static_cast<float>(std::exp(2 * random.normal())));
  }
  const Init drawn = started(a, {8, 64}, usual).init, normal = started(a, {8, 64}, gaussian).init;
  CHECK(drawn.kind == Init::Kind::kUniform);
  CHECK(drawn.scale == Approx(1 / std::sqrt(64.0)));
  CHECK(normal.kind == Init::Kind::kNormal);
  CHECK(normal.scale == Approx(0.125).epsilon(0.2));
  CHECK_THROWS_WITH(started(a, {8, 64}, neither), Catch::Contains("cannot tell what '" + a));
  // Too few to tell: they may be of the usual scheme.
  CHECK(started(a, {2, 2}, {0.1F, -0.2F, 0.3F, 0.25F}).init.kind == Init::Kind::kUniform);
}

TEST_CASE("a jitter keeps the stored values to start near", "[pt2]") {
  ImportOptions options;
  options.jitter = 0.01;
  for (const Weight& weight : ExportedModel::read(golden("torch-2.11")).graph(options).weights) {
    INFO(weight.name);
    CHECK((weight.init.kind == Init::Kind::kJittered) == weight.trained);
    CHECK(weight.init.scale == (weight.trained ? 0.01 : 0.0));
    CHECK(weight.stored != nullptr);
  }
}

}  // namespace
}  // namespace hfta::fusion::test
