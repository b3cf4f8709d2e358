// Features: which layers give them, that keeping them changes no bit, and how often they are computed.
#include "fusion/features.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "fusion/epochs.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kTrain = 21, kValidation = 9;
constexpr std::int64_t kPlenty = std::int64_t{1} << 30;

void store(Weight& weight, std::uint64_t seed) {
  const at::Tensor values = counted_normal(weight.shape, weight.dtype, seed).mul(0.3).contiguous();
  const auto* const bytes = static_cast<const std::byte*>(values.const_data_ptr());
  weight.trained = false;
  weight.init = {Init::Kind::kStored, 0, -1};
  weight.stored =
      std::make_shared<const StoredTensor>(StoredTensor{weight.shape, weight.dtype, {bytes, bytes + values.nbytes()}});
}

// A frozen backbone of two layers, and a head of `width` with dropout.
Model with_backbone(std::int64_t width = 8, DType dtype = DType::kFloat32) {
  Model model = classifier("backbone",
                           {layer("conv2d", {std::int64_t{3}, std::int64_t{16}, std::int64_t{3}}), layer("relu"),
                            layer("flatten"), layer("linear", {std::int64_t{576}, std::int64_t{24}}), layer("relu"),
                            layer("linear", {std::int64_t{24}, width}), layer("dropout", {0.2}), layer("relu"),
                            layer("linear", {width, std::int64_t{5}})},
                           {3, 8, 8}, 5, dtype, OptimizerKind::kAdam);
  std::uint64_t seed = 1;
  for (Weight& weight : model.graph.weights) {
    if (weight.name.starts_with("layers.0") || weight.name.starts_with("layers.3")) store(weight, seed++);
  }
  model.recipe.epochs = 4;
  model.recipe.batch_size = 6;
  return model;
}

struct Data {
  explicit Data(DType dtype = DType::kFloat32)
      : train{{counted_normal({kTrain, 3, 8, 8}, dtype, 3)}, counted_labels(kTrain, 5, 4), kTrain},
        validation{{counted_normal({kValidation, 3, 8, 8}, dtype, 5)}, counted_labels(kValidation, 5, 6), kValidation} {
  }
  DeviceData train, validation;
};

// The data as the rest takes them, and the sets of features behind them.
struct Kept {
  Kept(const std::shared_ptr<const SplitModel>& split, const Data& data, std::int64_t room,
       std::shared_ptr<FeatureModel> shared = nullptr)
      : model(shared != nullptr ? std::move(shared) : std::make_shared<FeatureModel>(split, 2)),
        of_train(std::make_shared<const FeatureSet>(model, data.train.inputs, data.train.size, room)),
        of_validation(std::make_shared<const FeatureSet>(model, data.validation.inputs, data.validation.size, room)),
        train{rest_inputs(*split, data.train.inputs, of_train), data.train.target, data.train.size},
        validation{rest_inputs(*split, data.validation.inputs, of_validation), data.validation.target,
                   data.validation.size} {}
  std::shared_ptr<FeatureModel> model;
  std::shared_ptr<const FeatureSet> of_train, of_validation;
  DeviceData train, validation;
};

using Curves = std::vector<std::map<std::string, double>>;

// What comes of `slots` trials, and their states at the end.
std::pair<Curves, std::vector<StateBytes>> trained(const Model& model, const Graph& graph, const DeviceData& train,
                                                   const DeviceData& validation, const Lowering& lowering,
                                                   const EpochOptions& options = {}, int slots = 3) {
  Array array(graph, model.recipe, {.lowering = lowering, .width = slots, .study_seed = 5});
  const Epochs epochs(model.recipe, options, train, &validation);
  for (int b = 0; b < slots; ++b) array.admit(b, trial(model, b));
  Curves curves;
  for (int e = 0; e < model.recipe.epochs; ++e) {
    for (const EpochResult& r : epochs.run(array)) curves.push_back(r.metrics);
  }
  std::vector<StateBytes> states;
  for (int b = 0; b < slots; ++b) states.push_back(array.extract(b));
  return {curves, states};
}

}  // namespace

TEST_CASE("a frozen backbone is cut off where its results take the fewest bytes") {
  const Model model = with_backbone();
  const FrozenPrefix found = frozen_prefix_of(model.graph);
  REQUIRE(found.split != nullptr);
  CHECK(found.prevented.empty());
  CHECK(found.split->bytes_per_sample == 24 * 4);
  CHECK(found.split->multiplies_per_sample == 16 * 36 * 27 + 576 * 24);
  CHECK(found.split->block == 1);
  CHECK(found.split->prefix.nodes.size() == 5);  // with the relu behind the last product
  CHECK(found.split->rest.inputs.size() == 1);
  CHECK(found.split->rest.weights.size() == model.graph.weights.size());
  CHECK(found.split->rest_inputs.empty());
}

TEST_CASE("nothing is cut off that is trained, or would cost more to keep than to compute") {
  Model all = with_backbone();
  for (Weight& weight : all.graph.weights) weight.trained = true;
  CHECK(frozen_prefix_of(all.graph).split == nullptr);
  Model small = classifier(
      "small",
      {layer("linear", {std::int64_t{4}, std::int64_t{64}}), layer("linear", {std::int64_t{64}, std::int64_t{3}})}, {4},
      3, DType::kFloat32);
  for (std::size_t i = 0; i < 2; ++i) store(small.graph.weights[i], i);
  CHECK(frozen_prefix_of(small.graph).split == nullptr);
}

TEST_CASE("bits do not depend on how many features are kept") {
  const DType dtype = GENERATE(DType::kFloat32, DType::kFloat64);
  const Lowering lowering = GENERATE(chunked(1), chunked(1, {}, 2), chunked(kCompiled, {}, 2), chunked(2));
  const Model model = with_backbone(8, dtype);
  const auto split = frozen_prefix_of(model.graph).split;
  REQUIRE(split != nullptr);
  const Data data(dtype);
  EpochOptions per_trial;
  per_trial.order.per_trial = true;
  for (const EpochOptions& options : {EpochOptions{}, per_trial}) {
    const Kept all(split, data, kPlenty);
    const auto expected = trained(model, split->rest, all.train, all.validation, lowering, options);
    CHECK(all.of_train->counts().computed == kTrain);
    CHECK(all.of_validation->counts().computed == kValidation);
    for (const std::int64_t room : {std::int64_t{0}, split->bytes_per_sample - 1, 7 * split->bytes_per_sample}) {
      const Kept some(split, data, room);
      CHECK((trained(model, split->rest, some.train, some.validation, lowering, options) == expected));
      CHECK(some.of_train->counts().kept == room / split->bytes_per_sample);
      CHECK(some.of_train->counts().computed > 2 * kTrain);
    }
  }
}

TEST_CASE("a model in two parts trains as the whole, up to rounding") {
  const Model model = with_backbone(8, DType::kFloat64);
  const auto split = frozen_prefix_of(model.graph).split;
  const Data data(DType::kFloat64);
  const Kept kept(split, data, kPlenty);
  const Lowering lowering = GENERATE(chunked(1), chunked(3), chunked(kCompiled));
  const auto parts = trained(model, split->rest, kept.train, kept.validation, lowering).first;
  const auto whole = trained(model, model.graph, data.train, data.validation, lowering).first;
  REQUIRE(parts.size() == whole.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const auto& [name, value] : whole[i]) CHECK(parts[i].at(name) == Approx(value).epsilon(1e-9));
  }
}

TEST_CASE("two heads over one backbone have one prefix") {
  const auto narrow = frozen_prefix_of(with_backbone(8).graph).split,
             wide = frozen_prefix_of(with_backbone(16).graph).split;
  CHECK(narrow->key == wide->key);
  Model other = with_backbone(8);
  store(other.graph.weights[0], 77);
  CHECK(frozen_prefix_of(other.graph).split->key != narrow->key);
  const Data data;
  const Kept first(narrow, data, kPlenty);
  static_cast<void>(trained(with_backbone(8), narrow->rest, first.train, first.validation, chunked(1)));
  const DeviceData again{rest_inputs(*wide, data.train.inputs, first.of_train), data.train.target, kTrain};
  const DeviceData evaluated{rest_inputs(*wide, data.validation.inputs, first.of_validation), data.validation.target,
                             kValidation};
  static_cast<void>(trained(with_backbone(16), wide->rest, again, evaluated, chunked(kCompiled)));
  CHECK(first.of_train->counts().computed == kTrain);
  CHECK(first.of_validation->counts().computed == kValidation);
}

TEST_CASE("a pause in mid-epoch changes no bit, and computes nothing twice") {
  const Model model = with_backbone();
  const auto split = frozen_prefix_of(model.graph).split;
  const Data data;
  const std::int64_t room = GENERATE(kPlenty, std::int64_t{0});
  const Kept undisturbed(split, data, room), kept(split, data, room);
  const auto expected =
      trained(model, split->rest, undisturbed.train, undisturbed.validation, chunked(kCompiled, {}, 2));
  Array array(split->rest, model.recipe, {.lowering = chunked(kCompiled, {}, 2), .width = 3, .study_seed = 5});
  const Epochs epochs(model.recipe, {}, kept.train, &kept.validation);
  for (int b = 0; b < 3; ++b) array.admit(b, trial(model, b));
  Curves curves;
  while (curves.size() < expected.first.size()) {
    std::atomic<int> calls = 0;
    const auto results = epochs.run(array, [&] { return ++calls > 2; });
    if (!results) continue;
    for (const EpochResult& r : *results) curves.push_back(r.metrics);
  }
  CHECK(curves == expected.first);
  for (int b = 0; b < 3; ++b) CHECK(array.extract(b) == expected.second[static_cast<std::size_t>(b)]);
  if (room > 0) CHECK(kept.of_train->counts().computed == kTrain);
}

TEST_CASE("not a number in a frozen weight is kept like any other result") {
  Model model = with_backbone();
  auto stored = std::make_shared<StoredTensor>(*model.graph.weights[0].stored);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(stored->bytes.data(), &nan, sizeof(nan));
  model.graph.weights[0].stored = stored;
  const auto split = frozen_prefix_of(model.graph).split;
  const Data data;
  const Kept kept(split, data, kPlenty);
  const auto [curves, states] = trained(model, split->rest, kept.train, kept.validation, chunked(1));
  CHECK(kept.of_train->counts().computed == kTrain);
  CHECK(std::isnan(curves.back().at("train_loss")));
}

TEST_CASE("what keeps frozen layers from being alike is named, and what to write against it") {
  Model model =
      classifier("noisy",
                 {layer("linear", {std::int64_t{64}, std::int64_t{64}}, "stem"), layer("dropout", {0.1}, "drop"),
                  layer("linear", {std::int64_t{64}, std::int64_t{64}}, "body"),
                  layer("linear", {std::int64_t{64}, std::int64_t{5}}, "head")},
                 {64}, 5, DType::kFloat32);
  for (std::size_t i = 0; i < 4; ++i) store(model.graph.weights[i], i);
  for (Node& node : model.graph.nodes) node.path = "backbone." + node.path;
  const FrozenPrefix found = frozen_prefix_of(model.graph);
  INFO(found.prevented);
  CHECK(found.prevented.find("draws random numbers") != std::string::npos);
  CHECK(found.prevented.find("eval() before the export") != std::string::npos);
  REQUIRE(found.split != nullptr);  // the first layer alone
  CHECK(found.split->multiplies_per_sample == 64 * 64);
}

TEST_CASE("a prefix that gives something else than its model's file says is refused") {
  Model model = with_backbone();
  const auto split = frozen_prefix_of(model.graph).split;
  auto wrong = std::make_shared<SplitModel>(*split);
  wrong->prefix.values[static_cast<std::size_t>(wrong->prefix.outputs[0])].shape = {kBatch, 25};
  const Data data;
  const Kept kept(wrong, data, kPlenty);
  CHECK_THROWS_AS(kept.train.inputs[0].range(0, 2), Error);
}

}  // namespace hfta::fusion::testing
