// Graphs that are compiled in parts: what LibTorch is given, what it computes beforehand, and what it refuses.
#include <ATen/core/dispatch/Dispatcher.h>

#include "fusion/compiled/compilation.hpp"
#include "fusion/cpu/aliases.hpp"
#include "fusion/op_traits.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/array/setting.hpp"

namespace hfta::fusion::testing {
namespace {

using Ints = std::vector<std::int64_t>;
using Ops = std::vector<std::string>;

const Arg kNone = std::monostate{};

/// The small MLP with calls between its first layer's output and whoever reads it.
class Between {
 public:
  Between() : model_(mlp(DType::kFloat64, OptimizerKind::kSgd)) {
    first_ = model_.graph.nodes.front().outputs.front();
    last_ = first_;
  }

  [[nodiscard]] ValueId last() const { return last_; }
  ValueId call(const std::string& op, std::vector<Arg> args) {
    last_ = static_cast<ValueId>(model_.graph.values.size());
    model_.graph.values.push_back(
        {"between", model_.graph.values[static_cast<std::size_t>(first_)].shape, DType::kFloat64});
    calls_.push_back({op, std::move(args), {last_}, "between", "net.py:7"});
    return last_;
  }

  Model finish() {
    std::vector<Node>& nodes = model_.graph.nodes;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      for (Arg& arg : nodes[i].args) {
        if (auto* id = std::get_if<ValueId>(&arg); id != nullptr && *id == first_) *id = last_;
      }
    }
    nodes.insert(nodes.begin() + 1, calls_.begin(), calls_.end());
    return model_;
  }

 private:
  Model model_;
  ValueId first_, last_;
  std::vector<Node> calls_;
};

}  // namespace

TEST_CASE("an output that may be its input is known to be one without schemas, too") {
  int views = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string op = toString(name);
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (op_traits(op) == nullptr || !handle) continue;
    for (const c10::Argument& result : handle->schema().returns()) {
      if (result.alias_info() == nullptr) continue;
      INFO(op);
      CHECK(cpu::may_share(op));
      ++views;
    }
  }
  CHECK(views > 100);
}

TEST_CASE("a model with an op that has no compiler is compiled but for that") {
  Between between;
  between.call("aten::erfc", {between.last()});
  const Model model = between.finish();
  const Compilation found = compilation_of(model.graph, model.recipe);
  CHECK(found.why_not.empty());
  CHECK(found.by_torch == Ops{"aten::erfc"});
}

TEST_CASE("a mask is computed beforehand, also where it is written in place") {
  Between between;
  const ValueId x = between.last();
  const ValueId mask = between.call("aten::zeros_like", {x, kNone, kNone, kNone, kNone, kNone});
  const ValueId part =
      between.call("aten::slice.Tensor", {mask, std::int64_t{1}, std::int64_t{0}, std::int64_t{2}, std::int64_t{1}});
  between.call("aten::fill_.Scalar", {part, 0.5});
  between.call("aten::add.Tensor", {x, mask, std::int64_t{1}});
  const Model model = between.finish();
  const Compilation found = compilation_of(model.graph, model.recipe);
  CHECK(found.why_not.empty());
  CHECK(found.by_torch.empty());
}

TEST_CASE("an index that can only be 0 is no obstacle") {
  Between between;
  const ValueId x = between.last();
  const auto whole = [](std::int64_t i) { return Arg(i); };
  const ValueId column = between.call("aten::slice.Tensor", {x, whole(1), whole(0), whole(1), whole(1)});
  const ValueId first = between.call("aten::argmax", {column, whole(1), true});
  const ValueId index = between.call("aten::view", {first, Ints{-1, 1}});  // between two parts
  const ValueId picked = between.call("aten::gather", {column, whole(1), index, false});
  between.call("aten::add.Tensor", {x, picked, whole(1)});
  const Model model = between.finish();
  const Compilation found = compilation_of(model.graph, model.recipe);
  CHECK(found.why_not.empty());
  CHECK(found.by_torch == Ops{"aten::argmax", "aten::gather"});
}

TEST_CASE("an expanded value that LibTorch reads gets the sum of its elements' gradients", "[numeric]") {
  constexpr int kWidth = 2;
  Between between;
  const ValueId x = between.last();
  const auto whole = [](std::int64_t i) { return Arg(i); };
  const ValueId column = between.call("aten::slice.Tensor", {x, whole(1), whole(0), whole(1), whole(1)});
  const ValueId wide = between.call("aten::expand_as", {column, x});
  const ValueId turned = between.call("aten::flip", {wide, Ints{1}});
  between.call("aten::add.Tensor", {x, turned, whole(1)});
  const Setting s = random_setting(between.finish(), 4, {3, 4}, {12, 1, 17});
  const Compilation found = compilation_of(s.model.graph, s.model.recipe);
  REQUIRE(found.why_not.empty());
  CHECK(found.by_torch == Ops{"aten::flip"});
  std::vector<std::vector<double>> losses;
  for (const int chunk : {1, kCompiled}) {
    Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
    for (int b = 0; b < kWidth; ++b) array.admit(b, trial(s.model, b));
    for (int step = 0; step < 3; ++step)
      losses.push_back(step_all(array, {{Samples{s.train.inputs, s.train.target, {}, 0, 12}}}));
  }
  for (std::size_t step = 0; step < 3; ++step) {
    for (std::size_t b = 0; b < kWidth; ++b) CHECK(losses[3 + step][b] == Approx(losses[step][b]).epsilon(1e-12));
  }
}

TEST_CASE("sizes that depend on the data are refused, naming the op and its place") {
  Between between;
  const ValueId x = between.last();
  const ValueId positive = between.call("aten::gt.Scalar", {x, 0.0});
  between.call("aten::masked_select", {x, positive});
  const Model model = between.finish();
  const std::string why = compilation_of(model.graph, model.recipe).why_not;
  CHECK_THAT(why, Catch::Contains("net.py:7") && Catch::Contains("aten::masked_select") &&
                      Catch::Contains("depend on the data"));
}

}  // namespace hfta::fusion::testing
