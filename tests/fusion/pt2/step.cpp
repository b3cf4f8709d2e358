#include "step.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion::test {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of an arena: more says nothing new

struct Parameter {
  std::string name;
  std::optional<Arg> fallback = {};  ///< None: it must be given.
  std::size_t repeated = 0;          ///< A number stands for a list of so many.
};
using Schema = std::vector<Parameter>;

const Arg kNone = std::monostate{};
const Arg kOnes = std::vector<std::int64_t>{1, 1}, kZeros = std::vector<std::int64_t>{0, 0};
const Arg kEmpty = std::vector<std::int64_t>{};

const std::map<std::string, Schema>& schemas() {
  const auto conv = [](std::size_t dims) -> Schema {
    const Arg ones = std::vector<std::int64_t>(dims, 1), zeros = std::vector<std::int64_t>(dims, 0);
    return {{"input"},
            {"weight"},
            {"bias", kNone},
            {"stride", ones, dims},
            {"padding", zeros, dims},
            {"dilation", ones, dims},
            {"groups", std::int64_t{1}}};
  };
  const auto constant = [](Schema schema) {
    for (const char* name : {"dtype", "layout", "device", "pin_memory"}) schema.push_back({name, kNone});
    return schema;
  };
  static const std::map<std::string, Schema> all = {
      {"aten::conv1d", conv(1)},
      {"aten::conv2d", conv(2)},
      {"aten::conv2d.padding", conv(2)},
      {"aten::conv_transpose2d.input",
       {{"input"},
        {"weight"},
        {"bias", kNone},
        {"stride", kOnes, 2},
        {"padding", kZeros, 2},
        {"output_padding", kZeros, 2},
        {"groups", std::int64_t{1}},
        {"dilation", kOnes, 2}}},
      {"aten::linear", {{"input"}, {"weight"}, {"bias", kNone}}},
      {"aten::batch_norm",
       {{"input"},
        {"weight"},
        {"bias"},
        {"running_mean"},
        {"running_var"},
        {"training"},
        {"momentum"},
        {"eps"},
        {"cudnn_enabled"}}},
      {"aten::layer_norm",
       {{"input"}, {"normalized_shape"}, {"weight", kNone}, {"bias", kNone}, {"eps", 1e-5}, {"cudnn_enable", true}}},
      {"aten::group_norm",
       {{"input"}, {"num_groups"}, {"weight", kNone}, {"bias", kNone}, {"eps", 1e-5}, {"cudnn_enabled", true}}},
      {"aten::max_pool2d",
       {{"self"},
        {"kernel_size", {}, 2},
        {"stride", kEmpty, 2},
        {"padding", kZeros, 2},
        {"dilation", kOnes, 2},
        {"ceil_mode", false}}},
      {"aten::avg_pool2d",
       {{"self"},
        {"kernel_size", {}, 2},
        {"stride", kEmpty, 2},
        {"padding", kZeros, 2},
        {"ceil_mode", false},
        {"count_include_pad", true},
        {"divisor_override", kNone}}},
      {"aten::adaptive_avg_pool2d", {{"self"}, {"output_size", {}, 2}}},
      {"aten::embedding",
       {{"weight"}, {"indices"}, {"padding_idx", std::int64_t{-1}}, {"scale_grad_by_freq", false}, {"sparse", false}}},
      {"aten::scaled_dot_product_attention",
       {{"query"},
        {"key"},
        {"value"},
        {"attn_mask", kNone},
        {"dropout_p", 0.0},
        {"is_causal", false},
        {"scale", kNone},
        {"enable_gqa", false}}},
      {"aten::flatten.using_ints", {{"self"}, {"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{-1}}}},
      {"aten::add.Tensor", {{"self"}, {"other"}, {"alpha", std::int64_t{1}}}},
      {"aten::sub.Tensor", {{"self"}, {"other"}, {"alpha", std::int64_t{1}}}},
      {"aten::slice.Tensor",
       {{"self"}, {"dim", std::int64_t{0}}, {"start", kNone}, {"end", kNone}, {"step", std::int64_t{1}}}},
      {"aten::softmax.int", {{"self"}, {"dim"}, {"dtype", kNone}}},
      {"aten::mean.dim", {{"self"}, {"dim"}, {"keepdim", false}, {"dtype", kNone}}},
      {"aten::sum.dim_IntList", {{"self"}, {"dim"}, {"keepdim", false}, {"dtype", kNone}}},
      {"aten::gelu", {{"self"}, {"approximate", std::string("none")}}},
      {"aten::leaky_relu", {{"self"}, {"negative_slope", 0.01}}},
      {"aten::chunk", {{"self"}, {"chunks"}, {"dim", std::int64_t{0}}}},
      {"aten::cat", {{"tensors"}, {"dim", std::int64_t{0}}}},
      {"aten::stack", {{"tensors"}, {"dim", std::int64_t{0}}}},
      {"aten::split.Tensor", {{"self"}, {"split_size"}, {"dim", std::int64_t{0}}}},
      {"aten::tril", {{"self"}, {"diagonal", std::int64_t{0}}}},
      {"aten::triu", {{"self"}, {"diagonal", std::int64_t{0}}}},
      {"aten::log_softmax.int", {{"self"}, {"dim"}, {"dtype", kNone}}},
      {"aten::amax", {{"self"}, {"dim", kEmpty}, {"keepdim", false}}},
      {"aten::max.dim", {{"self"}, {"dim"}, {"keepdim", false}}},
      {"aten::mean", {{"self"}, {"dtype", kNone}}},
      {"aten::sum", {{"self"}, {"dtype", kNone}}},
      {"aten::clamp", {{"self"}, {"min", kNone}, {"max", kNone}}},
      {"aten::elu", {{"self"}, {"alpha", 1.0}, {"scale", 1.0}, {"input_scale", 1.0}}},
      {"aten::softplus", {{"self"}, {"beta", 1.0}, {"threshold", 20.0}}},
      {"aten::clone", {{"self"}, {"memory_format", kNone}}},
      {"aten::contiguous", {{"self"}, {"memory_format", std::int64_t{0}}}},
      {"aten::add.Scalar", {{"self"}, {"other"}, {"alpha", std::int64_t{1}}}},
      {"aten::expand", {{"self"}, {"size"}, {"implicit", false}}},
      {"aten::ones", constant({{"size"}})},
      {"aten::zeros", constant({{"size"}})},
      {"aten::full", constant({{"size"}, {"fill_value"}})},
      {"aten::arange", constant({{"end"}})},
      {"aten::arange.start", constant({{"start"}, {"end"}})},
  };
  return all;
}

void complete(Node& node, const Schema& schema) {
  std::vector<std::optional<Arg>> given(schema.size());
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const std::string name = i < node.names.size() ? node.names[i] : "";
    const auto found = std::find_if(schema.begin(), schema.end(), [&](const Parameter& p) { return p.name == name; });
    const std::size_t place = name.empty() ? i : static_cast<std::size_t>(found - schema.begin());
    if (place >= schema.size()) return;
    given[place] = node.args[i];
  }
  std::vector<Arg> args;
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (!given[i] && !schema[i].fallback) return;
    Arg arg = given[i] ? *given[i] : *schema[i].fallback;
    const auto* one = std::get_if<std::int64_t>(&arg);
    if (one != nullptr && schema[i].repeated > 0) arg = std::vector<std::int64_t>(schema[i].repeated, *one);
    args.push_back(std::move(arg));
  }
  node.args = std::move(args);
  node.names.clear();
}

// A batch norm's count of its batches, which a reading for training leaves to whoever runs it.
bool counts_batches(const Node& node, const Graph& graph) {
  const auto* counted = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args.front());
  return node.op == "aten::add_.Tensor" && counted != nullptr &&
         std::any_of(graph.weights.begin(), graph.weights.end(), [&](const Weight& weight) {
           return weight.value == *counted && weight.dtype == DType::kInt64 && weight.shape.empty();
         });
}

std::vector<int> positions(const Graph& graph) {
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  return index;
}

// Weights as the file has them; of another dtype than the graph's, zeros.
std::vector<std::vector<std::byte>> weights_of(const Graph& graph) {
  std::vector<std::vector<std::byte>> all;
  for (const Weight& weight : graph.weights) {
    const auto bytes = static_cast<std::size_t>(elements_of(weight.shape, 1) * size_of(weight.dtype));
    const bool same = weight.stored != nullptr && weight.stored->dtype == weight.dtype;
    all.push_back(same ? weight.stored->bytes : std::vector<std::byte>(bytes));
  }
  return all;
}

void run(const cpu::CompiledGraph& plan, const Graph& graph) {
  cpu::Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  std::vector<std::vector<std::byte>> weights = weights_of(graph);
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    buffers[static_cast<std::size_t>(plan.weights[i].buffer)] = weights[i].data();
  }
  const auto clear = [&](const cpu::Tensor& t) {
    if (!t.defined()) return;
    std::memset(buffers[static_cast<std::size_t>(t.buffer)], 0, static_cast<std::size_t>(t.numel() * size_of(t.dtype)));
  };
  for (const cpu::Tensor& input : plan.inputs) clear(input);
  const std::vector<double> hypers(graph.hypers.size(), 0.5);
  cpu::Run all{buffers, hypers, SlotRandom{1, 2}};
  const cpu::Apply nothing = [](const cpu::Run&, std::span<const cpu::WeightGradient>) {};
  all.apply = &nothing;
  for (const cpu::Kernel& kernel : plan.kernels) kernel(all);
}

}  // namespace

Graph with_defaults(Graph graph) {
  std::erase_if(graph.nodes, [&](const Node& node) { return counts_batches(node, graph); });
  for (Node& node : graph.nodes) {
    const auto known = schemas().find(node.op);
    if (known != schemas().end()) complete(node, known->second);
  }
  return graph;
}

std::string run_step(const Graph& graph, std::int64_t n, DType dtype) {
  try {
    for (const Loss loss : {Loss::kCrossEntropy, Loss::kMse}) {
      Recipe recipe;
      recipe.loss = loss;
      recipe.dtype = dtype;
      Graph task = with_defaults(with_loss(graph, recipe));
      task.outputs = {task.objective->loss};
      const cpu::CompiledGraph plan =
          cpu::compile({.graph = task, .index = positions(task), .dtype = dtype, .n = n, .options = {.apply_bytes = 1}})
              .plan;
      if (plan.arena_bytes <= kMostBytes) run(plan, task);
    }
    const cpu::CompiledGraph plan =
        cpu::compile({.graph = graph, .index = positions(graph), .dtype = dtype, .n = n, .pass = cpu::Pass::kForward})
            .plan;
    if (plan.arena_bytes <= kMostBytes) run(plan, graph);
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return error.what();
  }
}

}  // namespace hfta::fusion::test
