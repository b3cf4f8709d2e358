#include "fusion/cpu/compile.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/panels.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

void compile_number(LoweringContext& site) {
  const Node& node = site.node();
  Builder& b = site.b;
  if (node.op == "number::size") {
    b.bind_number(site.output(), site.tensor(0).size(site.integer(1)));
  } else if (node.op == "number::numel") {
    b.bind_number(site.output(), site.tensor(0).numel());
  } else if (node.op == "number::stride") {
    const Tensor x = site.tensor(0);
    b.bind_number(site.output(), row_major(x.sizes)[x.index(site.integer(1))]);
  } else {
    std::vector<Number> args;
    for (std::size_t i = 0; i < node.args.size(); ++i) args.push_back(site.literal(i));
    try {
      b.bind_number(site.output(), number_of(node.op, args));
    } catch (const Error& error) {
      site.fail(error.what());
    }
  }
}

// What an op's compiler asks of its arguments, and finds otherwise, is the node's fault.
template <typename Work>
void at_node(const LoweringContext& site, Work work) {
  try {
    work();
  } catch (const ShapeError& error) {
    site.fail(error.what());
  } catch (const std::out_of_range&) {
    site.fail("it has fewer arguments or outputs than the op");
  } catch (const std::bad_variant_access&) {
    site.fail("an argument is of another kind than the op's");
  }
}

bool only_moves(const std::string& op) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (auto* family : {&shape_ops, &select_ops, &join_ops, &constant_ops}) {
      for (const NamedCompiler& compiler : (*family)()) all.insert(compiler.op);
    }
    return all;
  }();
  return names.contains(op);
}

// Kernels have at least one element to work on; LibTorch knows what becomes of none.
void refuse_empty(LoweringContext& site) {
  for (const ValueId id : inputs_of(site.node())) {
    if (site.b.bound(id) && site.b.value(id).numel() == 0) site.fail("an input of it is empty");
  }
}

bool has_complex(const Graph& graph, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId id) {
    return id != kNoValue && is_complex(graph.values[static_cast<std::size_t>(id)].dtype);
  });
}

void compile_op(LoweringContext& site) {
  const Graph& graph = site.b.graph();
  const Node& node = site.node();
  const bool counts = node.no_gradient && node.op == "aten::add_.Tensor";  // num_batches_tracked
  if (node.no_gradient && !counts) site.fail("it runs without gradients");
  const std::string op = counts ? node.op : out_of_place(node.op);
  const Compile compile = find_compiler(op);
  if (compile == nullptr) site.fail("it has no compiler");
  if (has_complex(graph, inputs_of(node)) || has_complex(graph, node.outputs)) site.fail("it has complex numbers");
  if (!counts && overwrites(node.op) && seen_later(graph, site.position()))
    site.fail("it writes what is read elsewhere");
  if (!only_moves(op)) refuse_empty(site);
  compile(site);
  if (counts || !overwrites(node.op) || site.output() == kNoValue) return;
  const Tensor before = site.tensor(0);
  const Tensor& after = site.b.value(site.output());
  if (after.dtype != before.dtype) site.fail("it would change its dtype");
  if (after.defined() && after.sizes != before.sizes) site.fail("it would change its sizes");
}

void compile_nodes(Builder& b) {
  const Graph& graph = b.graph();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (b.fused(i)) continue;
    b.begin_node(i);
    LoweringContext site(b, i);
    if (b.passes_on(i)) {
      site.bind(site.tensor(0));
      continue;
    }
    at_node(site, [&] { is_number_op(site.node().op) ? compile_number(site) : compile_op(site); });
  }
  for (const ValueId id : graph.outputs) {
    if (!b.bound(id)) throw Error(ErrorKind::kConfig, "model: its output cannot be compiled");
  }
}

// Of what looks at several nodes, or at none: tiling, inputs, backward kernels.
template <typename Work>
CompiledGraph checked(Work work) {
  try {
    return work();
  } catch (const ShapeError& error) {
    throw Error(ErrorKind::kConfig, std::string("model: cannot be compiled: ") + error.what());
  } catch (const std::out_of_range&) {
    throw Error(ErrorKind::kConfig, "model: cannot be compiled: a call has fewer arguments or outputs than its op");
  } catch (const std::bad_variant_access&) {
    throw Error(ErrorKind::kConfig, "model: cannot be compiled: an argument is of another kind than its op's");
  }
}

}  // namespace

CompiledGraph compile_training(const Graph& graph, const std::vector<int>& index, DType dtype, std::int64_t n) {
  return checked([&] {
    std::vector<int> positions = index;
    const Graph cut = in_panels(graph, positions, n);
    Builder b(cut, positions, dtype, n, true);
    compile_nodes(b);
    b.run_backward(b.value(cut.outputs.at(0)));
    return b.finish(cut.outputs);
  });
}

CompiledGraph compile_forward(const Graph& graph, const std::vector<int>& index, DType dtype, std::int64_t n) {
  return checked([&] {
    Builder b(graph, index, dtype, n, false);
    compile_nodes(b);
    return b.finish(graph.outputs);
  });
}

}  // namespace hfta::fusion::cpu
