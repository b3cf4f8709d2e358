// Chains that are cut into panels of channels give what they give whole.
#include "fusion/cpu/panels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

// Points [4, 700, 6] through a layer of 80 channels; `known` shapes let the cutter see what it may cut.
SmallGraph points(const std::string& last, bool known, bool normed) {
  SmallGraph small;
  const auto shaped = [&](ValueId id, Shape shape) {
    if (known) small.graph.values[static_cast<std::size_t>(id)].shape = std::move(shape);
    return id;
  };
  const ValueId x = small.weight("x", {4, 700, 6});
  const ValueId w = small.weight("w", {80, 6}), bias = small.weight("bias", {80});
  const ValueId scale = small.weight("scale", {80}), shift = small.weight("shift", {80});
  const ValueId mean = small.weight("mean", {80}, false), variance = small.weight("variance", {80}, false);
  for (double& v : small.weights[6]) v = 1;
  ValueId y = shaped(small.call("aten::linear", {x, w, bias}), {4, 700, 80});
  if (normed) {
    y = shaped(small.call("aten::view", {y, Ints{2800, 80}}), {2800, 80});
    y = shaped(small.call("aten::batch_norm", {y, scale, shift, mean, variance, true, 0.1, 1e-5, false}), {2800, 80});
    y = shaped(small.call("aten::view", {y, Ints{4, 700, -1}}), {4, 700, 80});
  }
  y = shaped(small.call("aten::relu", {y}), {4, 700, 80});
  if (last == "aten::max.dim") {
    y = shaped(small.call(last, {y, std::int64_t{1}, false}, 2), {4, 80});
  } else {
    y = shaped(small.call(last, {y, Ints{1}, false, std::monostate{}}), {4, 80});
  }
  small.call("aten::mul.Tensor", {y, y});
  return small;
}

std::size_t layers_of(const SmallGraph& small) {
  std::vector<int> index(small.graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const Graph cut = in_panels(small.graph, index, 1);
  CHECK(index.size() == cut.nodes.size());
  return static_cast<std::size_t>(
      std::count_if(cut.nodes.begin(), cut.nodes.end(), [](const Node& n) { return n.op == "aten::linear"; }));
}

}  // namespace

TEST_CASE("a chain cut into panels of channels gives what it gives whole") {
  for (const char* last : {"aten::max.dim", "aten::mean.dim"}) {
    for (const bool normed : {false, true}) {
      CAPTURE(last, normed);
      const SmallGraph cut = points(last, true, normed), whole = points(last, false, normed);
      CHECK(layers_of(cut) == 3);  // 32, 32 and 16 channels
      CHECK(layers_of(whole) == 1);
      const Outcome found = run_training(cut), expected = run_training(whole);
      CHECK(found.loss == Approx(expected.loss).epsilon(1e-12));
      for (std::size_t w = 0; w < expected.gradients.size(); ++w) {
        REQUIRE(found.gradients[w].size() == expected.gradients[w].size());
        for (std::size_t i = 0; i < expected.gradients[w].size(); i += 7) {
          CHECK(found.gradients[w][i] == Approx(expected.gradients[w][i]).margin(1e-12));
        }
      }
    }
  }
}

TEST_CASE("a chain of no rows is cut as any other") {
  SmallGraph small;
  const auto shaped = [&](ValueId id, Shape shape) {
    small.graph.values[static_cast<std::size_t>(id)].shape = std::move(shape);
    return id;
  };
  constexpr std::int64_t kWide = 1 << 19;  // so many that even a single row is cut
  const ValueId x = small.weight("x", {2, 0, 1}), w = small.weight("w", {kWide, 1}), bias = small.weight("b", {kWide});
  const ValueId y = shaped(small.call("aten::linear", {x, w, bias}), {2, 0, kWide});
  const ValueId last = shaped(small.call("aten::relu", {y}), {2, 0, kWide});
  shaped(small.call("aten::mean.dim", {last, Ints{1}, false, std::monostate{}}), {2, kWide});
  CHECK_NOTHROW(layers_of(small));
}

TEST_CASE("what mixes channels, or is read twice, stays whole") {
  SmallGraph over_channels = points("aten::mean.dim", true, true);
  over_channels.graph.nodes[over_channels.graph.nodes.size() - 2].args[1] = Ints{2};
  CHECK(layers_of(over_channels) == 1);
  SmallGraph twice = points("aten::max.dim", true, true);
  const ValueId normed = twice.graph.nodes[2].outputs[0];
  twice.call("aten::sum", {normed});
  CHECK(layers_of(twice) == 1);
}

}  // namespace hfta::fusion::cpu::testing
