#include "fusion/eager/boxed.hpp"

#include <ATen/ATen.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/passes/schema.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Calls the op of that node, whose tensors are `tensors` in order.
ValueEnv called(Node node, const std::vector<at::Tensor>& tensors) {
  Graph graph;
  for (std::size_t i = 0; i <= tensors.size(); ++i) graph.values.push_back({"value" + std::to_string(i), {}});
  node.outputs = {static_cast<ValueId>(tensors.size())};
  graph.nodes = {std::move(node)};
  const ValueEnv values(tensors.begin(), tensors.end());
  return BoxedOp(with_complete_arguments(graph).nodes.front(), at::kCPU).call(values);
}

}  // namespace

TEST_CASE("bounds of ranges that LibTorch would divide by zero or overflow with are refused") {
  const auto range = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    return called({"aten::arange.start_step", {start, end, step}, {}, "", ""}, {});
  };
  CHECK(range(2, 8, 3).front().toTensor().equal(at::arange(2, 8, 3)));
  CHECK_THROWS_WITH(range(kLeast, 8, 3), Catch::Contains("found a bound or step of -9223372036854775808"));
  CHECK_THROWS_WITH(range(0, kMost, -1), Catch::Contains("wanted at most 2^61"));
}

TEST_CASE("a bag's mode is one that LibTorch has") {
  const at::Tensor table = at::arange(12, at::kFloat).view({4, 3}), ids = at::tensor({1, 3, 0}, at::kLong),
                   offsets = at::tensor({0, 2}, at::kLong);
  const auto bags = [&](std::int64_t mode) {
    return called({"aten::embedding_bag", {ValueId{0}, ValueId{1}, ValueId{2}, false, mode}, {}, "", ""},
                  {table, ids, offsets});
  };
  CHECK(bags(0).front().toTensor().equal(at::tensor({12.F, 14.F, 16.F, 0.F, 1.F, 2.F}).view({2, 3})));
  CHECK(bags(2).front().toTensor().equal(at::tensor({9.F, 10.F, 11.F, 0.F, 1.F, 2.F}).view({2, 3})));
  const auto mode = GENERATE(std::int64_t{-2}, 3, kMost, kLeast);
  CHECK_THROWS_WITH(bags(mode),
                    Catch::Equals("aten::embedding_bag: found mode " + std::to_string(mode) + ", wanted 0 to 2"));
}

}  // namespace hfta::fusion
