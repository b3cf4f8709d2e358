#include "engine/fused/inputs.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

using Words = std::vector<std::string>;

fusion::Graph graph_of(const std::vector<fusion::Value>& inputs) {
  fusion::Graph graph;
  for (const fusion::Value& input : inputs) {
    graph.inputs.push_back(static_cast<fusion::ValueId>(graph.values.size()));
    graph.values.push_back(input);
  }
  return graph;
}

const fusion::Value kIds{"input_ids", {fusion::kBatch, 8}, fusion::DType::kInt64};
const fusion::Value kMask{"attention_mask", {fusion::kBatch, 8}, fusion::DType::kInt64};
const fusion::Value kImage{"image", {fusion::kBatch, 3, 8, 8}, fusion::DType::kFloat32};

TaskSpec spec_of(const Words& x) {
  TaskSpec spec;
  spec.data.where = "c.yaml:7";
  spec.data.x = x;
  return spec;
}

TEST_CASE("arrays go to the inputs of their names", "[fused]") {
  struct Case {
    Words x, wanted;
  };
  const fusion::Graph graph = graph_of({kIds, kMask, kImage});
  const std::vector<Case> cases = {
      {{"input_ids", "attention_mask", "image"}, {"input_ids", "attention_mask", "image"}},
      {{"attention_mask", "image", "input_ids"}, {"input_ids", "attention_mask", "image"}},
      {{"a", "b", "c"}, {"a", "b", "c"}},
      {{"tokens", "attention_mask", "c"}, {"tokens", "attention_mask", "c"}},
      {{"image", "ids"}, {"image", "ids"}},  // too few: check_task says so
  };
  for (const Case& one : cases) CHECK(in_input_order(spec_of(one.x), graph) == one.wanted);
}

TEST_CASE("an array in the place of another input than the one of its name", "[fused]") {
  const fusion::Graph graph = graph_of({kIds, kMask, kImage});
  for (const Words& x : {Words{"attention_mask", "ids", "image"}, Words{"a", "input_ids", "c"},
                         Words{"input_ids", "input_ids", "image"}}) {
    CHECK_THROWS_WITH(in_input_order(spec_of(x), graph),
                      Catch::StartsWith("c.yaml:7: data.x: found '") &&
                          Catch::Contains("input_ids, attention_mask, image"));
  }
}

TEST_CASE("an order that another would fit as well is told", "[fused]") {
  const fusion::Graph graph = graph_of({kIds, kMask, kImage});
  CHECK(told_by_order(spec_of({"a", "b", "c"}), graph) ==
        "a for 'input_ids', b for 'attention_mask', c for 'image'");
  CHECK(told_by_order(spec_of({"a", "attention_mask", "c"}), graph).empty());
  CHECK(told_by_order(spec_of({"a", "b"}), graph_of({kIds, kImage})).empty());
  CHECK(told_by_order(spec_of({"a"}), graph_of({kIds})).empty());
}

}  // namespace
}  // namespace hfta::engine
