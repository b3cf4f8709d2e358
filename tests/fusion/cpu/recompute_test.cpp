// What is computed again gives the same bits in less memory. run_training() compares every other test's graph, too.
#include "fusion/cpu/recompute.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kChannels = 12, kPixels = 16, kBatch = 6;

class Net {
 public:
  explicit Net(std::int64_t channels) { y_ = small_.weight("x", {kBatch, channels, kPixels, kPixels}); }

  Net& conv(std::int64_t from, std::int64_t to, std::int64_t groups = 1) {
    const ValueId w = small_.weight(name("w"), {to, from / groups, 3, 3});
    y_ = small_.call("aten::conv2d", {y_, w, std::monostate{}, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, groups});
    return *this;
  }
  Net& norm(std::int64_t channels) {
    const ValueId scale = small_.weight(name("scale"), {channels}), shift = small_.weight(name("shift"), {channels});
    const ValueId mean = small_.weight(name("mean"), {channels}, false);
    const ValueId variance = small_.weight(name("variance"), {channels}, false);
    for (double& v : small_.weights.back()) v = 1;
    y_ = small_.call("aten::batch_norm", {y_, scale, shift, mean, variance, true, 0.1, 1e-5, false});
    return *this;
  }
  Net& relu() { return call("aten::relu", {y_}); }
  Net& pool() { return call("aten::max_pool2d", {y_, Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, false}); }
  Net& add(ValueId other) { return call("aten::add.Tensor", {y_, other, std::int64_t{1}}); }
  Net& call(const std::string& op, std::vector<Arg> args) {
    y_ = small_.call(op, std::move(args));
    return *this;
  }
  [[nodiscard]] ValueId now() const { return y_; }
  [[nodiscard]] const SmallGraph& graph() const { return small_; }

 private:
  std::string name(const std::string& what) { return what + std::to_string(small_.weights.size()); }
  SmallGraph small_;
  ValueId y_ = kNoValue;
};

SmallGraph vgg_like() {
  Net net(kChannels);
  for (int layer = 0; layer < 9; ++layer) net.conv(kChannels, kChannels).relu();
  net.pool().conv(kChannels, kChannels).relu().pool();
  return net.graph();
}

SmallGraph resnet_like() {
  Net net(kChannels);
  for (int block = 0; block < 6; ++block) {
    const ValueId skipped = net.now();
    net.conv(kChannels, kChannels).norm(kChannels).relu().conv(kChannels, kChannels).norm(kChannels);
    net.add(skipped).relu();
  }
  return net.graph();
}

SmallGraph mobilenet_like() {
  Net net(kChannels);
  for (int block = 0; block < 6; ++block) {
    net.conv(kChannels, kChannels, kChannels).norm(kChannels).relu().conv(kChannels, kChannels).norm(kChannels).relu();
  }
  return net.graph();
}

CompiledGraph training_of(const SmallGraph& small, Recompute recompute = 0) {
  const Graph graph = with_error(small.graph, DType::kFloat64);
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  return compile({.graph = graph, .index = index, .dtype = DType::kFloat64, .options = {.recompute = recompute}}).plan;
}

// The loss is a mean over the channels alone, so that its own memory counts for little.
CompiledGraph plan_of(const SmallGraph& small, Recompute recompute) {
  SmallGraph mean = small;
  mean.call("aten::mean.dim", {small.graph.outputs.front(), Ints{0, 2, 3}, false, std::monostate{}});
  return training_of(mean, recompute);
}

double share_of_all(const SmallGraph& small, Recompute recompute) {
  return static_cast<double>(plan_of(small, recompute).arena_bytes) /
         static_cast<double>(plan_of(small, 0).arena_bytes);
}

}  // namespace

TEST_CASE("nets whose values are computed again give the same bits") {
  for (const SmallGraph& small : {vgg_like(), resnet_like(), mobilenet_like()}) {
    CHECK(plan_of(small, 0).recomputed == 0);
    CHECK(plan_of(small, 1).recomputed > 0);
    CHECK(plan_of(small, 3).recomputed > plan_of(small, 1).recomputed);
    static_cast<void>(run_training(small));  // with and without, to the same bits
  }
}

TEST_CASE("a step that computes values again needs less memory") {
  CHECK(share_of_all(resnet_like(), 1) < 0.8);
  CHECK(share_of_all(mobilenet_like(), 1) < 0.7);
  CHECK(share_of_all(vgg_like(), 2) < 0.75);
  CHECK(share_of_all(resnet_like(), 3) < 0.5);
  CHECK(share_of_all(mobilenet_like(), 4) < 0.45);
}

// Frozen linear layers of so many features behind a trained one, with weights of that type.
SmallGraph frozen_layers(DType held) {
  constexpr std::int64_t kFeatures = 48;
  constexpr int kLayers = 6;
  SmallGraph small;
  ValueId x = small.weight("x", {8, kFeatures});
  for (int layer = 0; layer < kLayers; ++layer) {
    std::vector<double> values(static_cast<std::size_t>(kFeatures * kFeatures));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 13) - 6;
    ValueId weight = small.constant("w" + std::to_string(layer), {kFeatures, kFeatures}, held, std::move(values));
    if (held != DType::kFloat64) {
      weight = small.call("aten::to.dtype", {weight, DType::kFloat64, false, false, std::monostate{}});
    }
    x = small.call("aten::tanh", {small.call("aten::linear", {x, weight, std::monostate{}})});
    x = small.call("aten::mul.Tensor", {x, 0.25});
  }
  return small;
}

TEST_CASE("weights that are held in a narrow type give the wide ones' bits, and are widened anew for the backward") {
  const DType held = GENERATE(DType::kBFloat16, DType::kInt8);
  const SmallGraph wide = frozen_layers(DType::kFloat64), narrow = frozen_layers(held);
  const Outcome wanted = run_training(wide), found = run_training(narrow);
  CHECK(found.loss == wanted.loss);
  CHECK(found.output == wanted.output);
  CHECK(found.gradients.at(0) == wanted.gradients.at(0));
  const CompiledGraph plan = training_of(narrow);
  CHECK(plan.recomputed == 6);
  // One wide weight at a time lies in the arena: what is kept for the backward is no more than with wide weights.
  const std::size_t one = 48 * 48 * sizeof(double);
  CHECK(plan.arena_bytes <= training_of(wide).arena_bytes + 2 * one);
}

TEST_CASE("evaluation has nothing to compute again") {
  const Graph graph = resnet_like().graph;
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  CHECK(compile({.graph = graph, .index = index, .dtype = DType::kFloat64, .pass = Pass::kForward}).plan.recomputed ==
        0);
}

}  // namespace hfta::fusion::cpu::testing
