// Where a graph may be cut into stages, and where it is. What stages compute: run_training() (gradient_check.hpp).
#include "fusion/cpu/stages.hpp"

#include <catch2/catch.hpp>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

void check_refused(const SmallGraph& small, std::vector<int> of_weight, bool refused) {
  const StageCut cut{2, std::move(of_weight)};
  CAPTURE(cut.of_weight);
  if (!refused) {
    CHECK_NOTHROW(Stages(small.graph, cut));
    return;
  }
  CHECK_THROWS_WITH(Stages(small.graph, cut), Catch::Contains("what two stages of a pipeline read"));
}

}  // namespace

TEST_CASE("a call that writes in place what another stage sees is refused") {
  SmallGraph small;
  const ValueId a = small.weight("a", {4}), b = small.weight("b", {4});
  const ValueId y = small.call("aten::sin", {a});
  const ValueId view = small.call("aten::view", {y, Ints{2, 2}});
  const ValueId sum = small.call("aten::add_.Tensor", {y, b, std::int64_t{1}});
  const ValueId flat = small.call("aten::view", {view, Ints{4}});
  small.call("aten::mul.Tensor", {sum, flat});
  check_refused(small, {0, 1}, true);
  check_refused(small, {0, 0}, false);
  check_refused(small, {1, 1}, false);
}

TEST_CASE("a call that writes what has been read before, but is sent afterwards, is refused") {
  SmallGraph small;
  const ValueId a = small.weight("a", {4}), b = small.weight("b", {4}), c = small.weight("c", {4});
  const ValueId y = small.call("aten::tanh", {a});
  const ValueId sum = small.call("aten::add.Tensor", {y, b, std::int64_t{1}});
  const ValueId positive = small.call("aten::relu_", {y});  // nobody reads y behind it
  const ValueId scaled = small.call("aten::mul.Tensor", {positive, c});
  small.call("aten::mul.Tensor", {sum, scaled});
  check_refused(small, {0, 1, 1}, true);
  check_refused(small, {0, 1, 0}, true);
  check_refused(small, {0, 0, 1}, false);
  check_refused(small, {1, 1, 1}, false);
  static_cast<void>(run_training(small));
}

TEST_CASE("running statistics that a later stage would write are refused") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 2}), factor = small.weight("factor", {2});
  const ValueId mean = small.weight("mean", {2}, false), variance = small.weight("variance", {2}, false);
  const auto norm = [&](ValueId of) {
    return small.call("aten::batch_norm",
                      {of, std::monostate{}, std::monostate{}, mean, variance, true, 0.1, 1e-5, false});
  };
  const ValueId scaled = small.call("aten::mul.Tensor", {norm(x), factor});
  norm(scaled);
  check_refused(small, {0, 1, 0, 0}, true);  // the second norm is in stage 1
  check_refused(small, {0, 0, 0, 0}, false);
  check_refused(small, {0, 1, 1, 1}, false);  // both are
}

TEST_CASE("values travel past stages that do not read them, and those that all can make do not") {
  SmallGraph small;
  const ValueId a = small.weight("a", {4}), b = small.weight("b", {4}), c = small.weight("c", {4});
  const ValueId mask = small.constant("mask", {4}, DType::kFloat64, {1, 0, 1, 1});
  const ValueId masks = small.call("aten::neg", {mask});
  const ValueId y = small.call("aten::mul.Tensor", {a, masks});
  const ValueId z = small.call("aten::mul.Tensor", {b, masks});
  const ValueId sum = small.call("aten::add.Tensor", {y, c, std::int64_t{1}});
  small.call("aten::mul.Tensor", {sum, z});
  const StageCut cut{3, {0, 1, 2, StageCut::kEvery}};
  const Stages stages(small.graph, cut);
  CHECK(stages.sent(0) == std::vector{y});
  CHECK(stages.sent(1) == std::vector{y, z});
  CHECK(stages.sent(2).empty());
  CHECK(stages.weights_of(2) == std::vector{false, false, true, false});
  CHECK(stages.weights_of(1) == std::vector{false, true, false, true});
}

TEST_CASE("what the loss does not depend on travels without a gradient, and its weights have none") {
  SmallGraph small;
  const ValueId a = small.weight("a", {4}), first = small.weight("first", {4}), second = small.weight("second", {4}),
                b = small.weight("b", {4});
  const ValueId aside = small.call("aten::mul.Tensor", {a, first});
  small.call("aten::mul.Tensor", {aside, second});
  small.call("aten::mul.Tensor", {a, b});
  const StageCut cut{2, {0, 0, 1, 1}};
  CHECK(Stages(small.graph, cut).sent(0) == std::vector{a, aside});
  const Outcome whole = run_training(small);
  for (const std::size_t dead : {1, 2}) CHECK(whole.gradients[dead].empty());
  check_stages(small, cut, whole);
}

TEST_CASE("a graph is cut where the slower of its stages takes least") {
  SmallGraph small;
  ValueId x = small.weight("x", {64, 64}, false);
  const auto linear = [&](std::int64_t from, std::int64_t to) {
    x = small.call("aten::linear", {x, small.weight("w", {to, from}), std::monostate{}});
    small.graph.values[static_cast<std::size_t>(x)].shape = {64, to};
  };
  for (const std::int64_t wide : {64, 64, 64}) linear(64, wide);
  linear(64, 4096);
  linear(4096, 64);
  const std::vector<bool> owned = {false, true, true, true, true, true};
  CHECK(balanced_cut(small.graph, owned, 1, 1).of_weight == std::vector{-1, 0, 0, 0, 0, 0});
  CHECK(balanced_cut(small.graph, owned, 1, 2).of_weight.back() == 1);
  CHECK(balanced_cut(small.graph, owned, 1, 5).of_weight == std::vector{-1, 0, 1, 2, 3, 4});
  CHECK_THROWS_WITH(balanced_cut(small.graph, owned, 1, 6), Catch::Contains("wanted at most 5"));
}

}  // namespace hfta::fusion::cpu::testing
