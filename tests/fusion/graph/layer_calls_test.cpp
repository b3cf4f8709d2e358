#include <catch2/catch.hpp>

#include "base/text.hpp"
#include "layer_text.hpp"

namespace hfta::fusion::test {
namespace {

std::string text_of(const Graph& graph, const Arg& arg) {
  const auto value = [&](ValueId id) { return graph.values[static_cast<std::size_t>(id)].name; };
  if (std::holds_alternative<std::monostate>(arg)) return "None";
  if (const auto* id = std::get_if<ValueId>(&arg)) return value(*id);
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag ? "true" : "false";
  if (const auto* real = std::get_if<double>(&arg)) return shortest(*real) + "f";
  if (const auto* integer = std::get_if<std::int64_t>(&arg)) return std::to_string(*integer);
  if (const auto* hyper = std::get_if<HyperRef>(&arg)) return graph.hypers[static_cast<std::size_t>(hyper->index)].path;
  if (const auto* word = std::get_if<std::string>(&arg)) return "'" + *word + "'";
  if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&arg)) return to_text(*sizes);
  std::vector<std::string> names;
  for (const ValueId id : std::get<std::vector<ValueId>>(arg)) names.push_back(value(id));
  return "[" + join(names) + "]";
}

std::string text_of(const Graph& graph, const Node& node) {
  std::vector<std::string> args;
  for (const Arg& arg : node.args) args.push_back(text_of(graph, arg));
  std::vector<std::string> outputs;
  for (const ValueId id : node.outputs) outputs.push_back(graph.values[static_cast<std::size_t>(id)].name);
  return join(outputs) + " = " + node.op + "(" + join(args) + ")";
}

struct CallCase {
  std::string layer;
  Shape input;
  std::vector<std::string> calls;
};

// Behind a `linear` named in, whose output has the input's shape and is called "in" in the calls.
void check_calls(const std::vector<CallCase>& cases) {
  for (const CallCase& c : cases) {
    CAPTURE(c.layer);
    const std::string size = std::to_string(c.input.back());
    const Graph graph = parse_graph("linear " + size + " " + size + " as=in | " + c.layer, c.input);
    std::vector<std::string> calls;
    for (std::size_t i = 1; i < graph.nodes.size(); ++i) calls.push_back(text_of(graph, graph.nodes[i]));
    CHECK(calls == c.calls);
  }
}

TEST_CASE("layers with weights call ATen with every argument in the schema's order", "[layers]") {
  check_calls({
      {"linear 8 2", {kBatch, 8}, {"layers.1 = aten::linear(in, layers.1.weight, layers.1.bias)"}},
      {"linear 8 2 bias=false as=head", {kBatch, 8}, {"head = aten::linear(in, head.weight, None)"}},
      {"conv1d 2 4 3 2 1 1 2 false",
       {kBatch, 2, 8},
       {"layers.1 = aten::conv1d(in, layers.1.weight, None, [2], [1], [1], 2)"}},
      {"conv2d 2 4 3",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::conv2d(in, layers.1.weight, layers.1.bias, [1, 1], [0, 0], [1, 1], 1)"}},
      {"conv2d 2 4 [3,5] padding=same",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::conv2d(in, layers.1.weight, layers.1.bias, [1, 1], [1, 2], [1, 1], 1)"}},
      {"conv2d 2 4 [4,3] padding=same",
       {kBatch, 2, 8, 8},
       {"layers.1.pad = aten::constant_pad_nd(in, [0, 0, 0, 1], 0)",
        "layers.1 = aten::conv2d(layers.1.pad, layers.1.weight, layers.1.bias, [1, 1], [1, 1], [1, 1], 1)"}},
      {"batch_norm2d 2",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::batch_norm(in, layers.1.weight, layers.1.bias, layers.1.running_mean, layers.1.running_var, "
        "true, 0.1f, 1e-05f, false)"}},
      {"batch_norm1d 8 1e-3 0.2 affine=false",
       {kBatch, 8},
       {"layers.1 = aten::batch_norm(in, None, None, layers.1.running_mean, layers.1.running_var, true, 0.2f, 0.001f, "
        "false)"}},
      {"layer_norm [2,8]",
       {kBatch, 2, 8},
       {"layers.1 = aten::layer_norm(in, [2, 8], layers.1.weight, layers.1.bias, 1e-05f, false)"}},
      {"layer_norm 8 bias=false",
       {kBatch, 8},
       {"layers.1 = aten::layer_norm(in, [8], layers.1.weight, None, 1e-05f, false)"}},
      {"layer_norm 8 1e-6 false", {kBatch, 8}, {"layers.1 = aten::layer_norm(in, [8], None, None, 1e-06f, false)"}},
  });
}

TEST_CASE("pools and shapes call ATen with every argument in the schema's order", "[layers]") {
  check_calls({
      {"max_pool1d 2", {kBatch, 2, 8}, {"layers.1 = aten::max_pool1d(in, [2], [2], [0], [1], false)"}},
      {"max_pool2d [3,2] 2 1 ceil_mode=true",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::max_pool2d(in, [3, 2], [2, 2], [1, 1], [1, 1], true)"}},
      {"avg_pool1d 2", {kBatch, 2, 8}, {"layers.1 = aten::avg_pool1d(in, [2], [2], [0], false, true)"}},
      {"avg_pool2d 2",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::avg_pool2d(in, [2, 2], [2, 2], [0, 0], false, true, None)"}},
      {"avg_pool2d 2 divisor_override=3",
       {kBatch, 2, 8, 8},
       {"layers.1 = aten::avg_pool2d(in, [2, 2], [2, 2], [0, 0], false, true, 3)"}},
      {"adaptive_avg_pool1d 2", {kBatch, 2, 8}, {"layers.1 = aten::adaptive_avg_pool1d(in, [2])"}},
      {"adaptive_avg_pool2d 1", {kBatch, 2, 8, 8}, {"layers.1 = aten::adaptive_avg_pool2d(in, [1, 1])"}},
      {"adaptive_max_pool2d 2 1",
       {kBatch, 2, 8, 8},
       {"layers.1, layers.1.indices = aten::adaptive_max_pool2d(in, [2, 1])"}},
      {"flatten", {kBatch, 2, 8, 8}, {"layers.1 = aten::flatten.using_ints(in, 1, 3)"}},
      {"unflatten -1 [2,4]", {kBatch, 8}, {"layers.1 = aten::unflatten.int(in, 1, [2, 4])"}},
      {"reshape 2 4", {kBatch, 8}, {"layers.1 = aten::reshape(in, [N, 2, 4])"}},
      {"transpose 1 -1", {kBatch, 2, 8}, {"layers.1 = aten::transpose.int(in, 1, 2)"}},
      {"add input", {kBatch, 8}, {"layers.1 = aten::add.Tensor(in, input)"}},
      {"add input in",
       {kBatch, 8},
       {"layers.1.0 = aten::add.Tensor(in, input)", "layers.1 = aten::add.Tensor(layers.1.0, in)"}},
      {"concat input", {kBatch, 8}, {"layers.1 = aten::cat([in, input], 1)"}},
      {"identity", {kBatch, 8}, {}},
  });
}

TEST_CASE("activations call ATen with every argument in the schema's order", "[layers]") {
  std::vector<CallCase> cases;
  for (const char* plain : {"relu", "relu6", "silu", "mish", "selu", "sigmoid", "tanh", "hardswish", "hardsigmoid"}) {
    cases.push_back({plain, {kBatch, 8}, {std::string("layers.1 = aten::") + plain + "(in)"}});
  }
  check_calls(cases);
  check_calls({
      {"leaky_relu", {kBatch, 8}, {"layers.1 = aten::leaky_relu(in, 0.01f)"}},
      {"leaky_relu 1", {kBatch, 8}, {"layers.1 = aten::leaky_relu(in, 1f)"}},
      {"elu 0.5", {kBatch, 8}, {"layers.1 = aten::elu(in, 0.5f, 1f, 1f)"}},
      {"gelu", {kBatch, 8}, {"layers.1 = aten::gelu(in, 'none')"}},
      {"gelu approximate=tanh", {kBatch, 8}, {"layers.1 = aten::gelu(in, 'tanh')"}},
      {"softplus", {kBatch, 8}, {"layers.1 = aten::softplus(in, 1f, 20f)"}},
      {"hardtanh -2 max_val=0.5", {kBatch, 8}, {"layers.1 = aten::hardtanh(in, -2f, 0.5f)"}},
      {"softmax", {kBatch, 8}, {"layers.1 = aten::softmax.int(in, 1, None)"}},
      {"log_softmax -1", {kBatch, 2, 8}, {"layers.1 = aten::log_softmax.int(in, 2, None)"}},
      {"dropout", {kBatch, 8}, {"layers.1 = aten::dropout(in, layers.1.p, true)"}},
      {"dropout 0.1 as=drop", {kBatch, 8}, {"drop = aten::dropout(in, drop.p, true)"}},
  });
}

}  // namespace
}  // namespace hfta::fusion::test
