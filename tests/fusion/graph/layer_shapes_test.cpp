#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "layer_text.hpp"

namespace hfta::fusion::test {
namespace {

struct ShapeCase {
  std::string layer;
  Shape input;
  std::string output;  ///< "": PyTorch refuses, and so do we.
};

// Nothing can be built without weights: a layer norm of the last size, which keeps the shape, is put behind the layer.
std::string output_shape(const ShapeCase& c) {
  try {
    const Graph probe = parse_graph("layer_norm " + std::to_string(c.input.back()) + " | " + c.layer, c.input);
    return to_text(probe.values[static_cast<std::size_t>(probe.outputs[0])].shape);
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.kind() == ErrorKind::kConfig);
    return "";
  }
}

TEST_CASE("windows give the output sizes that torch.nn 2.11 gives", "[layers]") {
  // Drawn at random and run through torch.nn once.
  const std::vector<ShapeCase> cases = {
      {"avg_pool2d [2,1] [1,2] 0 false", {kBatch, 6, 13, 5}, "[N, 6, 12, 3]"},
      {"max_pool1d 2 2 0 1 true", {kBatch, 4, 9}, "[N, 4, 5]"},
      {"max_pool2d 2 [1,1] 0 [1,1] false", {kBatch, 2, 5, 5}, "[N, 2, 4, 4]"},
      {"conv1d 4 2 3 2 0 1 2", {kBatch, 4, 5}, "[N, 2, 2]"},
      {"max_pool1d 1 2 1 2 true", {kBatch, 6, 10}, ""},
      {"max_pool2d 1 [2,2] 1 1 true", {kBatch, 4, 12, 7}, ""},
      {"max_pool1d 2 2 1 2 false", {kBatch, 2, 6}, "[N, 2, 3]"},
      {"conv2d 2 8 1 3 [0,1] 1 2", {kBatch, 2, 10, 9}, "[N, 8, 4, 4]"},
      {"max_pool1d 4 1 2 1 true", {kBatch, 6, 9}, "[N, 6, 10]"},
      {"conv2d 2 2 4 3 1 1 1", {kBatch, 2, 10, 9}, "[N, 2, 3, 3]"},
      {"conv2d 2 8 4 1 same [2,2] 2", {kBatch, 2, 11, 10}, "[N, 8, 11, 10]"},
      {"conv2d 2 2 [2,4] [1,1] 2 [2,1] 2", {kBatch, 2, 6, 11}, "[N, 2, 8, 12]"},
      {"max_pool2d 3 [2,3] 0 2 true", {kBatch, 6, 9, 12}, "[N, 6, 3, 4]"},
      {"conv2d 4 2 3 [2,2] [0,2] 2 2", {kBatch, 4, 13, 10}, "[N, 2, 5, 5]"},
      {"max_pool1d 3 3 0 2 true", {kBatch, 4, 12}, "[N, 4, 4]"},
      {"avg_pool2d [1,2] 2 [0,0] false", {kBatch, 6, 13, 9}, "[N, 6, 7, 4]"},
      {"max_pool1d 1 2 0 2 true", {kBatch, 2, 7}, "[N, 2, 4]"},
      {"conv1d 4 2 4 3 2 1 1", {kBatch, 4, 10}, "[N, 2, 4]"},
      {"conv2d 4 2 [1,3] [3,3] 1 [2,2] 2", {kBatch, 4, 11, 9}, "[N, 2, 5, 3]"},
      {"conv2d 2 8 [2,2] [2,3] 0 1 2", {kBatch, 2, 7, 11}, "[N, 8, 3, 4]"},
      {"conv1d 4 8 4 1 same 2 2", {kBatch, 4, 12}, "[N, 8, 12]"},
      {"avg_pool1d 3 1 1 true", {kBatch, 4, 12}, "[N, 4, 12]"},
      {"max_pool2d [1,4] [2,1] [0,0] 1 false", {kBatch, 4, 5, 7}, "[N, 4, 3, 4]"},
      {"avg_pool2d [1,1] [2,2] [1,2] true", {kBatch, 4, 12, 13}, ""},
      {"max_pool2d 4 [1,3] [0,1] [2,2] false", {kBatch, 2, 5, 5}, ""},
      {"conv2d 4 2 1 1 same 2 2", {kBatch, 4, 8, 9}, "[N, 2, 8, 9]"},
      {"avg_pool2d [1,1] [2,1] [2,0] false", {kBatch, 6, 7, 11}, ""},
      {"conv1d 6 2 4 3 0 2 1", {kBatch, 6, 6}, ""},
      {"conv1d 4 8 3 3 2 2 2", {kBatch, 4, 6}, "[N, 8, 2]"},
      {"conv2d 2 8 [3,2] 3 1 [1,1] 2", {kBatch, 2, 9, 7}, "[N, 8, 3, 3]"},
      {"max_pool1d 3 1 2 1 true", {kBatch, 6, 5}, ""},
      {"max_pool1d 2 2 1 2 false", {kBatch, 6, 12}, "[N, 6, 6]"},
      {"max_pool1d 4 1 0 2 false", {kBatch, 2, 13}, "[N, 2, 7]"},
      {"conv2d 4 2 [4,3] 1 same 1 1", {kBatch, 4, 7, 10}, "[N, 2, 7, 10]"},
      {"conv1d 4 8 3 1 1 2 2", {kBatch, 4, 12}, "[N, 8, 10]"},
      {"conv2d 2 8 4 [2,1] [0,1] [2,1] 1", {kBatch, 2, 7, 7}, "[N, 8, 1, 6]"},
      {"avg_pool2d [4,2] 3 1 true", {kBatch, 4, 5, 5}, "[N, 4, 2, 2]"},
      {"max_pool1d 4 3 1 2 true", {kBatch, 2, 6}, "[N, 2, 2]"},
      {"avg_pool2d [2,2] [3,3] 1 true", {kBatch, 2, 12, 7}, "[N, 2, 5, 3]"},
      {"max_pool2d [3,1] [1,2] 1 1 false", {kBatch, 2, 5, 13}, ""},
      {"conv2d 2 8 [4,3] [1,1] 2 [1,1] 1", {kBatch, 2, 5, 9}, "[N, 8, 6, 11]"},
      {"max_pool1d 2 3 0 2 false", {kBatch, 2, 6}, "[N, 2, 2]"},
  };
  for (const ShapeCase& c : cases) {
    CAPTURE(c.layer);
    CHECK(output_shape(c) == c.output);
  }
}

TEST_CASE("other layers give these output sizes", "[layers]") {
  const std::vector<ShapeCase> cases = {
      {"linear 5 7", {kBatch, 5}, "[N, 7]"},
      {"linear 5 7 false", {kBatch, 3, 4, 5}, "[N, 3, 4, 7]"},
      {"linear in_features=5 out_features=7.0", {kBatch, 5}, "[N, 7]"},
      {"conv2d 1 4 3 padding=valid", {kBatch, 1, 8, 8}, "[N, 4, 6, 6]"},
      {"conv2d 1 4 kernel_size=[3,1] padding=same", {kBatch, 1, 8, 8}, "[N, 4, 8, 8]"},
      {"adaptive_avg_pool1d 3", {kBatch, 2, 9}, "[N, 2, 3]"},
      {"adaptive_max_pool1d 12", {kBatch, 2, 9}, "[N, 2, 12]"},
      {"adaptive_avg_pool2d 1", {kBatch, 2, 9, 5}, "[N, 2, 1, 1]"},
      {"adaptive_avg_pool2d 2 3", {kBatch, 2, 9, 5}, "[N, 2, 2, 3]"},
      {"adaptive_max_pool2d [2,3]", {kBatch, 2, 9, 5}, "[N, 2, 2, 3]"},
      {"flatten", {kBatch, 2, 9, 5}, "[N, 90]"},
      {"flatten 2", {kBatch, 2, 9, 5}, "[N, 2, 45]"},
      {"flatten 1 -2", {kBatch, 2, 9, 5}, "[N, 18, 5]"},
      {"flatten", {kBatch, 7}, "[N, 7]"},
      {"unflatten 1 [1,8,8]", {kBatch, 64}, "[N, 1, 8, 8]"},
      {"unflatten -1 [2,-1]", {kBatch, 3, 8}, "[N, 3, 2, 4]"},
      {"reshape 1 8 8", {kBatch, 64}, "[N, 1, 8, 8]"},
      {"reshape 64", {kBatch, 1, 8, 8}, "[N, 64]"},
      {"reshape [-1,16]", {kBatch, 1, 8, 8}, "[N, 4, 16]"},
      {"transpose 1 2", {kBatch, 3, 8}, "[N, 8, 3]"},
      {"transpose -1 1", {kBatch, 3, 8, 2}, "[N, 2, 8, 3]"},
      {"softmax", {kBatch, 8}, "[N, 8]"},
      {"log_softmax -1", {kBatch, 3, 8}, "[N, 3, 8]"},
      {"identity", {kBatch, 3, 8}, "[N, 3, 8]"},
      {"batch_norm1d 3", {kBatch, 3, 8}, "[N, 3, 8]"},
      {"batch_norm1d 3", {kBatch, 3}, "[N, 3]"},
      {"batch_norm2d 3", {kBatch, 3, 8, 8}, "[N, 3, 8, 8]"},
      {"layer_norm [8,2]", {kBatch, 3, 8, 2}, "[N, 3, 8, 2]"},
      {"add input", {kBatch, 3, 8, 2}, "[N, 3, 8, 2]"},
      {"add layers.0 input", {kBatch, 3}, "[N, 3]"},
      {"concat input", {kBatch, 3, 8}, "[N, 6, 8]"},
      {"concat input layers.0 -1", {kBatch, 3, 8}, "[N, 3, 24]"},
      {"concat other=input dim=2", {kBatch, 3, 8}, "[N, 3, 16]"},
  };
  for (const ShapeCase& c : cases) {
    CAPTURE(c.layer);
    CHECK(output_shape(c) == c.output);
  }
}

TEST_CASE("skips join outputs of different layers", "[layers]") {
  const Graph net = parse_graph(
      "conv2d 1 4 3 padding=1 as=stem | relu | conv2d 4 4 3 1 1 | add stem | relu as=block | conv2d 4 2 1 | concat "
      "block stem",
      {kBatch, 1, 6, 6});
  CHECK(to_text(net.values[static_cast<std::size_t>(net.outputs[0])].shape) == "[N, 10, 6, 6]");
  const Node& cat = net.nodes.back();
  CHECK(cat.op == "aten::cat");
  const auto& tensors = std::get<std::vector<ValueId>>(cat.args[0]);
  std::vector<std::string> names;
  for (const ValueId id : tensors) names.push_back(net.values[static_cast<std::size_t>(id)].name);
  CHECK(names == std::vector<std::string>{"layers.5", "block", "stem"});
}

}  // namespace
}  // namespace hfta::fusion::test
