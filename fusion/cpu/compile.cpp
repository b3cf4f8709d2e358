#include "fusion/cpu/compile.hpp"

#include <stdexcept>
#include <variant>

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
    try {
      b.bind_number(site.output(), number_of(node.op, args));
    } catch (const Error& error) {
      site.fail(error.what());
    }
  }
}

// What an op's compiler asks of its arguments, and finds otherwise, is the node's fault.
template <typename Work>
void at_node(const Site& site, Work work) {
  try {
    work();
  } catch (const Misfit& misfit) {
    site.fail(misfit.what());
  } catch (const std::out_of_range&) {
    site.fail("it has fewer arguments or outputs than the op");
  } catch (const std::bad_variant_access&) {
    site.fail("an argument is of another kind than the op's");
  }
}

void compile_node(Builder& b, Site& site) {
  const std::string& op = site.node().op;
  const bool counts = site.node().no_gradient && op == "aten::add_.Tensor";  // num_batches_tracked
  if (site.node().no_gradient && !counts) site.fail("it runs without gradients");
  const Compile compile = find_compiler(counts ? op : out_of_place(op));
  if (compile == nullptr) site.fail("it has no compiler");
  const bool overwritten = !counts && overwrites(op);
  if (overwritten && seen_later(b.graph(), site.position())) site.fail("it writes what is read elsewhere");
  compile(site);
  if (!overwritten || site.output() == kNoValue) return;
  const Tensor& result = b.value(site.output());
  const Tensor first = site.tensor(0);
  if (result.dtype != first.dtype) site.fail("it would change its dtype");
  if (result.defined() && result.sizes != first.sizes) site.fail("it would change its sizes");
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
    at_node(site, [&] { is_number_op(site.node().op) ? compile_number(site) : compile_node(b, site); });
  }
  if (!b.bound(graph.output)) throw Error(ErrorKind::kConfig, "model: its output cannot be compiled");
}

// Of what belongs to no node: inputs, the loss, backward kernels.
template <typename Work>
Plan checked(Work work) {
  try {
    return work();
  } catch (const Misfit& misfit) {
    throw Error(ErrorKind::kConfig, std::string("model: cannot be compiled: ") + misfit.what());
  }
}

}  // namespace

Plan compile_training(const Graph& graph, const std::vector<int>& index, Loss loss, DType dtype, std::int64_t n) {
  return checked([&] {
    std::vector<int> positions = index;
    const Graph cut = in_panels(graph, positions, n);
    Builder b(cut, positions, dtype, n, true);
    compile_nodes(b);
    const Tensor target = compile_loss(b, loss, b.value(cut.output));
    b.run_backward();
    return b.finish(graph.output, target);
  });
}

Plan compile_forward(const Graph& graph, const std::vector<int>& index, DType dtype, std::int64_t n) {
  return checked([&] {
    Builder b(graph, index, dtype, n, false);
    compile_nodes(b);
    return b.finish(graph.output, std::nullopt);
  });
}

}  // namespace hfta::fusion::cpu
