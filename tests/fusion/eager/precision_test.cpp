// Models computed in bfloat16: near those in float32, with float32 in all that lasts; and what has no such precision
// says so. That no slot minds its neighbours is in isolation_test.cpp, that steps are replayed in step_graph_test.cpp.
#include <ATen/autocast_mode.h>

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/eager/autocast.hpp"
#include "fusion/eager/program.hpp"
#include "fusion/measure.hpp"
#include "op_cases.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/setting.hpp"

namespace hfta::fusion::testing {
namespace {

using I = std::int64_t;

constexpr int kWidth = 4;

// Projections, heads made by a reshape, attention (with dropout on its weights where `dropped` is above 0), a head.
Model attention(double dropped, OptimizerKind kind) {
  Model model = classifier("attention",
                           {layer("linear", {I{8}, I{8}}), layer("layer_norm", {I{8}}),
                            layer("reshape", {I{2}, I{6}, I{4}}), layer("flatten"), layer("linear", {I{48}, I{4}})},
                           {6, 8}, 4, DType::kFloat32, kind);
  Graph& graph = model.graph;
  const auto flatten = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return node.op == "aten::flatten.using_ints"; });
  const ValueId heads = std::get<ValueId>(flatten->args[0]), attended = static_cast<ValueId>(graph.values.size());
  graph.values.push_back(graph.values[static_cast<std::size_t>(heads)]);
  flatten->args[0] = attended;
  graph.nodes.insert(flatten, {"aten::scaled_dot_product_attention",
                               {heads, heads, heads, std::monostate(), dropped},
                               {attended},
                               "attention",
                               "test",
                               false,
                               {}});
  return model;
}

Model pools() {
  return classifier("pools and dropout",
                    {layer("conv2d", {I{1}, I{4}, I{3}}), layer("avg_pool2d", {I{2}}), layer("dropout", {0.2}),
                     layer("conv2d", {I{4}, I{6}, I{2}}), layer("gelu"), layer("adaptive_max_pool2d", {I{2}}),
                     layer("adaptive_avg_pool2d", {I{1}}), layer("flatten"), layer("linear", {I{6}, I{5}})},
                    {1, 8, 8}, 5, DType::kFloat32, OptimizerKind::kSgd);
}

Model frozen_backbone() {
  Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  model.name = "frozen backbone";
  for (Weight& weight : model.graph.weights) weight.trained = weight.trained && weight.name.find("layers.8") == 0;
  return model;
}

std::vector<Model> models() {
  return {mlp(DType::kFloat32, OptimizerKind::kAdamW),
          conv_net(DType::kFloat32, OptimizerKind::kSgd),
          attention(0, OptimizerKind::kAdam),
          attention(0.2, OptimizerKind::kSgd),
          pools(),
          frozen_backbone()};
}

Array filled(const Model& model, const Lowering& lowering, int width = kWidth) {
  return {model.graph, model.recipe, {.lowering = lowering, .width = width, .study_seed = 5}};
}

void admit_all(Array& array, const Model& model) {
  for (int b = 0; b < array.width(); ++b) array.admit(b, trial(model, b));
}

// Losses of some steps, by step and slot.
std::vector<std::vector<double>> losses(const Model& model, const Lowering& lowering, int steps, int width = kWidth) {
  Array array = filled(model, lowering, width);
  admit_all(array, model);
  std::vector<std::vector<double>> all;
  for (int s = 0; s < steps; ++s) all.push_back(step_all(array, model.batch));
  return all;
}

// Those with a rule, and products and the like that run through LibTorch's batching.
std::vector<OpCase> cases() {
  const CaseArg x{{}, {{{kBatch, 3, 4}}}}, rows{{}, {{{kBatch, 4}}}};
  const auto weight = [](Shape shape) { return CaseArg{{}, {{std::move(shape), From::kWeight}}}; };
  std::vector<OpCase> all = op_cases();
  all.push_back({"aten::matmul", {x, weight({4, 2})}});
  all.push_back({"aten::bmm", {x, weight({4, 4, 2})}});
  all.push_back({"aten::mm", {rows, weight({4, 2})}});
  all.push_back({"aten::addmm", {weight({2}), rows, weight({4, 2})}});
  all.push_back({"aten::prelu", {x, weight({3})}});
  all.push_back({"aten::sum", {x}});
  return all;
}

// Every way to run the model's ops three slots wide.
std::vector<Lowering> ways(const Model& model) {
  std::vector<Lowering> all = {chunked(3)};
  for (const auto& [family, names] : choosable_families(model.graph)) {
    for (const std::string& name : names) all.push_back(chunked(3, {{family, name}}));
  }
  return all;
}

// Whether what the op gives slot 1 in evaluation came out in bfloat16.
bool gives_bfloat16(Model model, const Lowering& lowering) {
  const auto op = std::find_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                               [](const Node& node) { return node.path == "op"; });
  if (is_complex(model.graph.values[static_cast<std::size_t>(op->outputs[0])].dtype)) return false;  // no output
  model.graph.outputs = {op->outputs[0]};
  model.recipe.loss = Loss::kModel;  // nothing is trained, and no target has its shape
  Array array = filled(model, lowering, 3);
  admit_all(array, model);
  const at::Tensor y = lowering.chunk == 1 ? array.predict(1, model.batch.parts[0])
                                           : array.predict(0, model.batch.parts[0]).select(0, 1);
  const at::Tensor exact = y.to(at::kFloat);
  return exact.equal(exact.to(at::kBFloat16).to(at::kFloat));
}

}  // namespace

TEST_CASE("a model in bfloat16 trains nearly as in float32", "[numeric]") {
  const int chunk = GENERATE(1, 2, 4);
  for (const Model& model : models()) {
    INFO(model.name << ", chunk " << chunk);
    const auto expected = losses(model, chunked(chunk), 8), found = losses(in_bfloat16(model), chunked(chunk), 8);
    CHECK(found != expected);
    for (std::size_t s = 0; s < expected.size(); ++s) {
      for (std::size_t b = 0; b < kWidth; ++b) {
        CAPTURE(s, b);
        CHECK(found[s][b] == Approx(expected[s][b]).epsilon(0.03));
      }
    }
  }
}

TEST_CASE("what lasts of a model in bfloat16 is float32") {
  const int chunk = GENERATE(1, 4);
  for (const Model& model : models()) {
    INFO(model.name << ", chunk " << chunk);
    Array array = filled(in_bfloat16(model), chunked(chunk));
    array.keep_gradients();
    admit_all(array, model);
    step_all(array, model.batch);
    const StateBytes state = array.extract(1);
    for (const TensorView& tensor : parse_safetensors(state).tensors) CHECK(tensor.dtype == "F32");
    for (const auto& [name, gradient] : array.gradients(0)) CHECK(gradient.scalar_type() == at::kFloat);
    CHECK(array.predict(0, model.batch.parts[0]).scalar_type() == at::kFloat);
  }
}

TEST_CASE("a model in bfloat16 is evaluated in it, and nearly as in float32") {
  const int chunk = GENERATE(1, 4);
  for (const Model& model : models()) {
    INFO(model.name << ", chunk " << chunk);
    Array exact = filled(model, chunked(chunk)), rough = filled(in_bfloat16(model), chunked(chunk));
    admit_all(exact, model);
    admit_all(rough, model);
    const at::Tensor expected = exact.predict(0, model.batch.parts[0]);
    const at::Tensor found = rough.predict(0, model.batch.parts[0]);
    CHECK_FALSE(found.equal(expected));
    CHECK(relative_difference(found, expected) < 0.03);
  }
}

TEST_CASE("epochs in bfloat16 are the same with and without shared layers prepared, and after a move") {
  const Setting s = random_setting(in_bfloat16(frozen_backbone()), 5, {1, 8, 8}, {20, 6, 61});
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  const auto run = [&](int chunk, bool moved) {
    Array array = filled(s.model, chunked(chunk, {}, 2)), other = filled(s.model, chunked(chunk, {}, 2));
    admit_all(array, s.model);
    std::vector<std::map<std::string, double>> metrics;
    for (int e = 0; e < 4; ++e) {
      Array& at_work = moved && e > 1 ? other : array;
      for (int b = 0; moved && e == 2 && b < kWidth; ++b) other.insert(b, trial(s.model, b), array.extract(b));
      for (EpochResult& r : epochs.run(at_work)) metrics.push_back(std::move(r.metrics));
    }
    return metrics;
  };
  for (const int chunk : {1, 4}) CHECK(run(chunk, true) == run(chunk, false));
}

TEST_CASE("every op runs in bfloat16 for several slots wherever it does alone", "[numeric]") {
  const auto root = [](double loss) { return std::sqrt(std::max(loss, 0.0)); };  // a sum over the op's outputs
  const bool rounded = GENERATE(false, true);
  std::set<std::string> refused;
  for (const OpCase& op_case : cases()) {
    const Model model = model_in_bfloat16_of(op_case, rounded);
    INFO(model.name << (rounded ? ", on bfloat16" : ""));
    std::vector<std::vector<double>> alone;
    try {
      alone = losses(model, chunked(1), 2, 3);
    } catch (const Error& error) {  // LibTorch's objection, with the op's place
      REQUIRE(error.kind() == ErrorKind::kConfig);
      refused.insert(op_case.op);
      continue;
    }
    Model exact = model;
    exact.recipe.precision = Precision::kFloat32;
    for (const Lowering& way : ways(model)) {
      INFO(way.to_text());
      try {
        CHECK(gives_bfloat16(model, way) == gives_bfloat16(model, chunked(1)));
        const auto found = losses(model, way, 2, 3);
        const auto expected = rounded ? alone : losses(exact, way, 2, 3);
        for (std::size_t b = 0; b < 3; ++b) {
          CHECK(root(found[0][b]) == Approx(root(alone[0][b])).epsilon(0.02).margin(0.1));
          CHECK(root(found[0][b]) == Approx(root(expected[0][b])).epsilon(0.05).margin(0.1));
        }
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  // As under torch.autocast: both ends of a lerp are of one type.
  CHECK(refused ==
        (rounded ? std::set<std::string>{"aten::lerp.Scalar", "aten::lerp_.Scalar"} : std::set<std::string>{}));
}

TEST_CASE("what has no bfloat16 says so") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd), rough = in_bfloat16(model);
  CHECK_THROWS_WITH(
      filled(rough, chunked(kCompiled)),
      "lowering: found compiled with precision bfloat16, wanted float32 or tf32: kernels are compiled for "
      "float32 and float64");
  Array array = filled(rough, chunked(1));
  CHECK_THROWS_WITH(array.lower(chunked(kCompiled)), Catch::Contains("found compiled with precision bfloat16"));
  const MeasureOptions options{4, 1};
  CHECK(lowering_candidates(model.graph, model.recipe, options, at::kCPU).front().executor == "compiled");
  for (const Lowering& way : lowering_candidates(rough.graph, rough.recipe, options, at::kCPU)) {
    CHECK(way.executor != "compiled");
  }
  Model exact = mlp(DType::kFloat64, OptimizerKind::kSgd);
  for (const Precision precision : {Precision::kTf32, Precision::kBfloat16}) {
    exact.recipe.precision = precision;
    CHECK_THROWS_WITH(filled(exact, chunked(1)),
                      Catch::Contains(name_of(precision)) && Catch::Contains("with dtype float64, wanted float32"));
  }
}

TEST_CASE("tf32 changes nothing on a CPU") {
  Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 4);
  const auto expected = losses(model, chunked(chunk), 3);
  model.recipe.precision = Precision::kTf32;
  CHECK(losses(model, chunked(chunk), 3) == expected);
}

TEST_CASE("autocast is on for as long as it is asked for, and leaves all as it was") {
  namespace autocast = at::autocast;
  const auto state = [] {
    return std::tuple(autocast::is_autocast_enabled(at::kCPU), autocast::get_autocast_dtype(at::kCPU),
                      autocast::is_autocast_cache_enabled());
  };
  const bool cached = GENERATE(false, true);
  autocast::set_autocast_cache_enabled(cached);
  autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  const auto before = state();
  {
    const Autocast none(Precision::kTf32, at::kCPU);
    CHECK(state() == before);
    const Autocast lower(Precision::kBfloat16, at::kCPU);
    const auto within = std::tuple(true, at::kBFloat16, false);
    CHECK(state() == within);
    CHECK(as_multiplied(at::ones({2})).scalar_type() == at::kBFloat16);
    CHECK(as_multiplied(at::ones({2}, at::kDouble)).scalar_type() == at::kDouble);
    CHECK(as_multiplied(at::ones({2}, at::kLong)).scalar_type() == at::kLong);
    { const Autocast again(Precision::kBfloat16, at::kCPU); }
    CHECK(state() == within);
  }
  CHECK(state() == before);
  CHECK(as_multiplied(at::ones({2})).scalar_type() == at::kFloat);
  autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  autocast::set_autocast_cache_enabled(true);
}

}  // namespace hfta::fusion::testing
