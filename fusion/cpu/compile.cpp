#include "fusion/cpu/compile.hpp"

#include "base/error.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/panels.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

void compile_number(Site& site) {
  const Node& node = site.node();
  Builder& b = site.b;
  if (node.op == "number::size") {
    b.bind_number(site.output(), site.tensor(0).size(site.integer(1)));
  } else if (node.op == "number::numel") {
    b.bind_number(site.output(), site.tensor(0).numel());
  } else if (node.op == "number::stride") {
    b.bind_number(site.output(), row_major(site.tensor(0).sizes)[site.tensor(0).index(site.integer(1))]);
  } else {
    std::vector<Number> args;
    for (const Arg& arg : node.args) {
      if (const auto* id = std::get_if<ValueId>(&arg)) {
        if (!b.number(*id)) site.fail("a number is not known beforehand");
        args.push_back(*b.number(*id));
      } else if (const auto* whole = std::get_if<std::int64_t>(&arg)) {
        args.emplace_back(*whole);
      } else if (const auto* flag = std::get_if<bool>(&arg)) {
        args.emplace_back(*flag);
      } else {
        args.emplace_back(std::get<double>(arg));
      }
    }
    b.bind_number(site.output(), number_of(node.op, args));
  }
}

void compile_nodes(Builder& b) {
  const Graph& graph = b.graph();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (b.fused(i)) continue;
    Site site(b, i);
    if (b.passes_on(i)) {
      site.bind(site.tensor(0));
      continue;
    }
    if (is_number_op(graph.nodes[i].op)) {
      compile_number(site);
      continue;
    }
    const std::string& op = graph.nodes[i].op;
    const bool counts = graph.nodes[i].no_gradient && op == "aten::add_.Tensor";  // num_batches_tracked
    if (graph.nodes[i].no_gradient && !counts) site.fail("it runs without gradients");
    const Compile compile = find_compiler(counts ? op : out_of_place(op));
    if (compile == nullptr) site.fail("it has no compiler");
    if (!counts && overwrites(op) && seen_later(graph, i)) site.fail("it writes what is read elsewhere");
    const bool overwritten = !counts && overwrites(op);
    compile(site);
    if (overwritten && b.value(site.output()).dtype != site.tensor(0).dtype) site.fail("it would change its dtype");
  }
  if (!b.bound(graph.output)) throw Error(ErrorKind::kConfig, "model: its output cannot be compiled");
}

}  // namespace

Plan compile_training(const Graph& graph, const std::vector<int>& index, Loss loss, DType dtype, std::int64_t n) {
  std::vector<int> positions = index;
  const Graph cut = in_panels(graph, positions, n);
  Builder b(cut, positions, dtype, n, true);
  compile_nodes(b);
  const Tensor target = compile_loss(b, loss, b.value(cut.output));
  b.run_backward();
  return b.finish(graph.output, target);
}

Plan compile_forward(const Graph& graph, const std::vector<int>& index, DType dtype, std::int64_t n) {
  Builder b(graph, index, dtype, n, false);
  compile_nodes(b);
  return b.finish(graph.output, std::nullopt);
}

}  // namespace hfta::fusion::cpu
