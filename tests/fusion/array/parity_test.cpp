// Every rule against the plain op on each slot alone, forward and backward, for every candidate forced in turn.

#include <set>

#include "catch_after_torch.hpp"
#include "fusion/compiled/compilation.hpp"
#include "fusion/eager/program.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

using I = std::int64_t;

std::vector<Model> models(DType dtype) {
  const auto k = [](const char* kind) { return layer(kind); };
  std::vector<Model> all = {conv_net(dtype, OptimizerKind::kSgd), mlp(dtype, OptimizerKind::kSgd)};
  const auto image = [&](const std::string& name, std::vector<LayerSpec> layers, I features, Shape input = {2, 6, 6}) {
    layers.push_back(k("flatten"));
    layers.push_back(layer("linear", {features, I{3}}));
    all.push_back(classifier(name, layers, std::move(input), 3, dtype));
  };
  image("strided padded conv", {layer("conv2d", {I{2}, I{4}, I{3}}, "", {{"stride", I{2}}, {"padding", I{1}}})}, 36);
  image("dilated conv without bias", {layer("conv2d", {I{2}, I{4}, I{2}}, "", {{"dilation", I{2}}, {"bias", false}})},
        64);
  image("grouped conv", {layer("conv2d", {I{2}, I{4}, I{3}}, "", {{"groups", I{2}}})}, 64);
  image("conv then average pool", {layer("conv2d", {I{2}, I{3}, I{3}}), layer("avg_pool2d", {I{2}})}, 12);
  image("average pool with its own divisor",
        {layer("conv2d", {I{2}, I{3}, I{3}}),
         layer("avg_pool2d", {I{2}}, "", {{"divisor_override", I{3}}, {"padding", I{1}}, {"ceil_mode", true}})},
        27);
  image(
      "adaptive pools",
      {layer("conv2d", {I{2}, I{3}, I{3}}), layer("adaptive_max_pool2d", {I{3}}), layer("adaptive_avg_pool2d", {I{2}})},
      12);
  image("batch norm first", {layer("batch_norm2d", {I{2}}), layer("conv2d", {I{2}, I{3}, I{3}})}, 48);
  image("residual",
        {layer("conv2d", {I{2}, I{2}, I{3}}, "stem", {{"padding", I{1}}}), k("relu"),
         layer("conv2d", {I{2}, I{2}, I{3}}, "", {{"padding", I{1}}}), layer("add", {std::string("stem")}),
         layer("concat", {std::string("stem")})},
        144);
  image("conv1d",
        {layer("conv1d", {I{3}, I{4}, I{3}}, "", {{"padding", I{1}}}), layer("batch_norm1d", {I{4}}),
         layer("max_pool1d", {I{2}})},
        16, {3, 8});
  image("layer norm", {k("flatten"), layer("linear", {I{72}, I{8}}), layer("layer_norm", {I{8}}), k("gelu")}, 8);
  image("batch norm of features", {k("flatten"), layer("linear", {I{72}, I{8}}), layer("batch_norm1d", {I{8}})}, 8);
  image("reshape and softmax",
        {layer("reshape", {I{6}, I{12}}), layer("softmax", {}, "", {{"dim", I{-1}}}),
         layer("log_softmax", {}, "", {{"dim", I{1}}})},
        72);
  image("same padding of an even kernel",
        {layer("conv2d", {I{2}, I{3}, I{2}}, "", {{"padding", std::string("same")}}),
         layer("batch_norm2d", {I{3}}, "", {{"affine", false}})},
        108);
  image(
      "transpose",
      {layer("transpose", {I{1}, I{2}}), layer("unflatten", {I{3}}, "", {{"unflattened_size", std::vector<I>{2, 3}}})},
      72);
  for (const char* kind : {"relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softplus", "hardswish",
                           "hardsigmoid", "hardtanh", "relu6", "mish", "selu"}) {
    image(std::string("activation ") + kind, {k("flatten"), layer("linear", {I{72}, I{8}}), k(kind)}, 8);
  }
  return all;
}

// Models with an op that has no compiler: LibTorch runs it.
std::set<std::string> compiled_in_parts() {
  return {"adaptive pools", "same padding of an even kernel", "activation selu"};
}

void compare(const Model& model, const Lowering& lowering, double tolerance) {
  INFO(model.name << ", " << lowering.to_text());
  constexpr int kWidth = 3;  // 3 slots in chunks of 2: one chunk is padded
  Array alone(model.graph, model.recipe, {.lowering = chunked(1), .width = kWidth, .study_seed = 5});
  Array wide(model.graph, model.recipe, {.lowering = lowering, .width = kWidth, .study_seed = 5});
  alone.keep_gradients();
  wide.keep_gradients();
  for (int b = 0; b < kWidth; ++b) {
    alone.admit(b, trial(model, b));
    wide.admit(b, trial(model, b));
  }
  const std::vector<double> expected = step_all(alone, model.batch), found = step_all(wide, model.batch);
  for (int b = 0; b < kWidth; ++b) {
    INFO("slot " << b);
    CHECK(found[static_cast<std::size_t>(b)] == Approx(expected[static_cast<std::size_t>(b)]).epsilon(tolerance));
    const auto own = alone.gradients(b);
    const auto shared = wide.gradients(b / lowering.chunk);
    REQUIRE(own.size() == shared.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      INFO(own[i].first);
      const at::Tensor a = shared[i].second.select(0, b % lowering.chunk), e = own[i].second.select(0, 0);
      // A bias in front of batch norm has a gradient of zero: what is left is rounding, at the size of the others.
      if (e.to(at::kDouble).norm().item<double>() > 1e-6) CHECK(relative_difference(a, e) < tolerance);
    }
    const at::Tensor expected_output = alone.predict(b, model.batch.parts[0]);
    at::Tensor found_output = wide.predict(b / lowering.chunk, model.batch.parts[0]);
    if (lowering.chunk > 1) found_output = found_output.select(0, b % lowering.chunk);
    CHECK(relative_difference(found_output, expected_output) < 10 * tolerance);
  }
}

}  // namespace

TEST_CASE("a slot of a wide array trains as it would alone", "[numeric]") {
  const auto [dtype, tolerance] = GENERATE(table<DType, double>({{DType::kFloat32, 1e-5}, {DType::kFloat64, 1e-12}}));
  for (const Model& model : models(dtype)) {
    const Compilation compilation = compilation_of(model.graph, model.recipe);
    CAPTURE(model.name, compilation.why_not);
    CHECK(compilation.why_not.empty());
    CHECK(compilation.by_torch.empty() == !compiled_in_parts().contains(model.name));
    compare(model, chunked(kCompiled, {}, 2), tolerance);
    compare(model, chunked(2), tolerance);
    compare(model, chunked(2, {}, 2), tolerance);
    for (const auto& [family, names] : choosable_families(model.graph)) {
      for (const std::string& name : names) compare(model, chunked(2, {{family, name}}), tolerance);
    }
  }
}

TEST_CASE("an op that LibTorch lacks, or cannot count the randomness of, is refused by name and place") {
  Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  Node& node = model.graph.nodes[2];
  node.where = "net.py:12";
  node.args.resize(1);
  node.op = GENERATE("mylib::frobnicate", "aten::poisson");
  CHECK_THROWS_WITH(Array(model.graph, model.recipe, {.width = 1, .study_seed = 5}),
                    Catch::Contains("net.py:12") && Catch::Contains(node.op));
}

}  // namespace hfta::fusion::testing
