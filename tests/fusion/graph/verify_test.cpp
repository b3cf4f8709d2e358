#include "fusion/verify.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

// x [N, 4] times a weight [2, 4], and its size.
Graph sound() {
  Graph graph;
  graph.values = {{"x", {kBatch, 4}}, {"w", {2, 4}}, {"y", {kBatch, 2}}, {"n", {}, DType::kInt64, true}};
  graph.nodes = {{"aten::linear", {ValueId{0}, ValueId{1}}, {2}, "head", "net.py:3"},
                 {"number::size", {ValueId{2}, std::int64_t{0}}, {3}, "head", "net.py:4"}};
  auto stored = std::make_shared<StoredTensor>();
  stored->shape = {2, 4};
  stored->bytes.resize(32);
  Weight weight{"head.weight", {2, 4}, DType::kFloat32, {}, true, 1, std::move(stored), {}};
  graph.weights = {weight};
  graph.inputs = {0};
  graph.outputs = {2};
  return graph;
}

}  // namespace

TEST_CASE("a graph holds together, or the node that does not is named") {
  CHECK_NOTHROW(verify(sound()));
  struct Case {
    std::function<void(Graph&)> change;
    std::string message;
  };
  const auto stored = [](Graph& g) -> StoredTensor& { return const_cast<StoredTensor&>(*g.weights[0].stored); };
  const auto [change, message] = GENERATE_COPY(values<Case>({
      {[](Graph& g) {
         g.values.push_back(g.values[1]);
         g.weights.push_back(g.weights[0]);
         g.weights[1].value = 4;
       },
       "weight 'head.weight': found two of that name"},
      {[](Graph& g) { g.weights[0].name.clear(); }, "found one without a name"},
      {[](Graph& g) { g.weights[0].init.zero_row = 2; }, "weight 'head.weight': found row 2 to be zero, of 2"},
      {[](Graph& g) { g.nodes[0].args[0] = ValueId{2}; }, "net.py:3: head (aten::linear): uses 'y' before it is made"},
      {[](Graph& g) { g.nodes[0].args[0] = ValueId{9}; }, "net.py:3: head (aten::linear): found value 9 of 4"},
      {[](Graph& g) { g.nodes[0].outputs = {-7}; }, "found value -7 of 4"},
      {[](Graph& g) { g.nodes.push_back(g.nodes[0]); }, "makes 'y', which is there already"},
      {[](Graph& g) { g.nodes[0].outputs = {1}; }, "makes 'w', which is there already"},
      {[](Graph& g) {
         g.inputs = {0, 0};
       },
       "the inputs: makes 'x', which is there already"},
      {[](Graph& g) { g.outputs = {3}; }, "the output: found a number, wanted a tensor"},
      {[](Graph& g) { g.outputs = {-1}; }, "the output: found value -1 of 4"},
      {[](Graph& g) { g.nodes[0].args[0] = HyperRef{0}; }, "found parameter 0 of 0"},
      {[](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }, "uses 'y' before it is made"},
      {[](Graph& g) { g.nodes[1].args.clear(); }, "found no argument, wanted a tensor"},
      {[](Graph& g) { g.nodes[1].args[1] = ValueId{0}; }, "net.py:4: head (number::size): argument 1 is no number"},
      {[](Graph& g) { g.nodes[1].args[0] = std::int64_t{3}; }, "argument 0 is no tensor"},
      {[](Graph& g) { g.values[3].number = false; }, "gives 'n', which is said to be a tensor"},
      {[](Graph& g) {
         g.nodes[0].args[1] = std::vector<Size>{{0, 0}};
       },
       "found the tensor 'x' as a size"},
      {[](Graph& g) {
         g.values[1].shape = {4, 2};
       },
       "weight 'head.weight': found float32 [2, 4], wanted float32 [4, 2]"},
      {[](Graph& g) { g.values[1].dtype = DType::kInt64; }, "found float32 [2, 4], wanted int64 [2, 4]"},
      {[&](Graph& g) { stored(g).shape = {8}; }, "weight 'head.weight': found float32 [8], wanted float32 [2, 4]"},
      {[&](Graph& g) { stored(g).bytes.resize(31); }, "found 31 bytes, wanted 32"},
      {[](Graph& g) {
         constexpr std::int64_t kHuge = std::int64_t{1} << 62;
         g.values[1].shape = g.weights[0].shape = {kHuge, 4};
       },
       "weight 'head.weight': found float32 [4611686018427387904, 4], wanted what a machine can hold"},
      {[](Graph& g) { g.weights[0].value = 17; }, "weight 'head.weight': found value 17 of 4"},
  }));
  INFO(message);
  Graph graph = sound();
  change(graph);
  CHECK_THROWS_WITH(verify(graph), Catch::Contains(message));
}

}  // namespace hfta::fusion
