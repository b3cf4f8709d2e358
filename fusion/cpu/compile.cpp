#include "fusion/cpu/compile.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/error.hpp"
#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/panels.hpp"
#include "fusion/cpu/parts.hpp"
#include "fusion/graph/arguments.hpp"
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

// Runs work() and reports a fault that the op's compiler finds in the arguments as the node's.
template <typename Work>
void at_node(const LoweringContext& site, Work work) {
  try {
    work();
  } catch (const CallError&) {
    throw;
  } catch (const ShapeError& error) {
    site.fail(error.what());
  } catch (const ArgumentError& error) {
    site.fail(error.text());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    site.fail(error.what());
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

// num_batches_tracked += 1
bool counts(const Node& node) { return node.no_gradient && node.op == "aten::add_.Tensor"; }

// Under torch.no_grad(): a view of what gradients are wanted of has a buffer of its own.
void keep_gradients_out(Builder& b, const std::vector<ValueId>& outputs) {
  for (const ValueId id : outputs) {
    if (id != kNoValue && b.wants_gradient(b.value(id))) b.bind(id, b.copied(b.value(id)));
  }
}

// Under torch.no_grad(): a tensor that is written in place keeps its gradient, as though nothing was written.
void pass_gradient_by(Builder& b, const Tensor& before, const Tensor& after) {
  b.differentiable({before}, {after}, [=, &b] {
    if (b.gradient(after)) b.hand_on_gradient(after, before);
  });
}

void compile_op(LoweringContext& site) {
  Builder& b = site.b;
  const Node& node = site.node();
  const bool in_place = overwrites(node.op) && !counts(node);
  const std::string op = in_place ? out_of_place(node.op) : node.op;
  if (!has_compiler(b.graph(), node)) site.fail("it has no compiler");
  if (in_place && seen_later(b.graph(), site.position())) site.fail("it writes what is read elsewhere");
  if (!only_moves(op)) refuse_empty(site);
  b.record(!node.no_gradient);
  find_compiler(op)(site);
  b.record(true);
  if (counts(node)) return;
  if (node.no_gradient) keep_gradients_out(b, node.outputs);
  if (!in_place || site.output() == kNoValue) return;
  const Tensor before = site.tensor(0);
  const Tensor& after = b.value(site.output());
  if (after.dtype != before.dtype) site.fail("it would change its dtype");
  if (after.defined() && after.sizes != before.sizes) site.fail("it would change its sizes");
  if (node.no_gradient && after.defined()) pass_gradient_by(b, before, after);
}

void compile_nodes(Builder& b, Parts& parts) {
  const Graph& graph = b.graph();
  parts.begin(b);
  fuse_rotations(b);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (b.fused(i)) {
      parts.bind_known(b, i);  // for the call that it was compiled along with
      continue;
    }
    b.begin_node(i);
    LoweringContext site(b, i);
    if (parts.takes(i)) {
      at_node(site, [&] { parts.compile(b, i); });
      continue;
    }
    parts.bind_known(b, i);
    if (b.passes_on(i)) {
      site.bind(site.tensor(0));
      continue;
    }
    at_node(site, [&] { is_number_op(site.node().op) ? compile_number(site) : compile_op(site); });
  }
  parts.bind_known_outputs(b);
  for (const ValueId id : graph.outputs) {
    if (!b.bound(id)) throw Error(ErrorKind::kConfig, "model: its output cannot be compiled");
  }
}

// at_node() for work that looks at several nodes, or at none: tiling, inputs, backward kernels.
template <typename Work>
auto checked(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const ShapeError& error) {
    throw Error(ErrorKind::kConfig, std::string("model: cannot be compiled: ") + error.what());
  }
}

// `attempt`: of compiling the graph; begun anew with each call that turns out to be the library's.
template <typename Attempt>
auto with_parts(const Graph& graph, const Library* library, Attempt attempt) {
  Parts parts(graph, library);
  for (;;) {
    try {
      return checked([&] { return attempt(parts); });
    } catch (const CallError& error) {
      if (!parts.hand_over(error.node())) throw;
    }
  }
}

const Tensor& loss_of(const Builder& b) {
  if (b.graph().outputs.empty()) throw Error(ErrorKind::kConfig, "model: found no output, wanted the loss");
  return b.value(b.graph().outputs.front());
}

// `use`: of the builder, when forward and backward are compiled.
template <typename Use>
auto with_training(const CompileRequest& request, Use use) {
  std::vector<int> positions = request.index;
  const Graph cut = checked([&] { return in_panels(request.graph, positions, request.n); });
  return with_parts(cut, request.options.library, [&](Parts& parts) {
    Builder b(cut, positions, request.dtype, request.n, true, request.options);
    compile_nodes(b, parts);
    b.run_backward(loss_of(b));
    return use(b);
  });
}

// `use`: of the builder, when the forward is compiled.
template <typename Use>
auto with_forward(const CompileRequest& request, Use use) {
  return with_parts(request.graph, request.options.library, [&](Parts& parts) {
    Builder b(request.graph, request.index, request.dtype, request.n, false, {.threads = request.options.threads});
    compile_nodes(b, parts);
    return use(b);
  });
}

// Facts that stages need of each other's values: the whole graph is compiled to find them, and none of that is kept.
GraphFacts facts_of(const CompileRequest& request, const std::vector<ValueId>& wanted) {
  Graph whole = request.graph;
  whole.outputs.insert(whole.outputs.end(), wanted.begin(), wanted.end());
  return with_parts(whole, request.options.library, [&](Parts& parts) {
    const bool training = request.pass == Pass::kTraining;
    Builder b(whole, request.index, request.dtype, request.n, training);
    compile_nodes(b, parts);
    if (training) b.run_backward(loss_of(b));
    GraphFacts facts;
    for (const ValueId id : wanted) {
      const Tensor& value = b.value(id);
      facts.values[id] = {value.sizes, value.dtype, b.reached(value)};
    }
    for (std::size_t v = 0; v < whole.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (const std::optional<Number>& number = b.number(id)) facts.numbers[id] = *number;
    }
    return facts;
  });
}

// Backward of a stage that has no loss, or of the last one; `own`: with the builder's ids.
void run_backward(Builder& b, const StageGraph& own, bool last) {
  if (last) {
    b.run_backward(loss_of(b));
  } else {
    std::vector<Builder::Seed> seeds;
    for (std::size_t i = 0; i < own.given.size(); ++i) {
      seeds.push_back({b.value(own.given_of[i]), b.value(own.given[i])});
    }
    b.run_backward(seeds);
  }
  for (std::size_t i = 0; i < own.returned.size(); ++i) {
    b.bind(own.returned[i], b.gradient_of_input(b.value(own.returned_of[i])));
  }
}

// `use`: takes the builder when its backward is there.
template <typename Use>
auto with_training_stage(const CompileRequest& request, const StageGraph& own, Use use) {
  const bool last = request.stage->number == request.stage->cut.stages - 1;
  std::vector<int> positions = own.index;
  const Graph panels = checked([&] { return in_panels(own.graph, positions, request.n); });
  return with_parts(panels, request.options.library, [&](Parts& parts) {
    Builder b(panels, positions, request.dtype, request.n, true, request.options);
    for (std::size_t i = 0; i < own.returned.size(); ++i) {
      b.want_gradient(b.value(own.returned_of[i]));
      b.bind(own.returned[i], b.value(own.returned_of[i]));  // until it is there
    }
    compile_nodes(b, parts);
    run_backward(b, own, last);
    return use(b);
  });
}

StageGraph stage_of(const CompileRequest& request) {
  const Stages stages(request.graph, request.stage->cut);
  return stages.stage(request.stage->number, request.index, facts_of(request, stages.all_sent()));
}

// `use`: of the builder, when all that the request wants is compiled. `own`: its stage; null: it has none.
template <typename Use>
auto with_compiled(const CompileRequest& request, const StageGraph* own, Use use) {
  if (request.pass == Pass::kTraining) {
    return own == nullptr ? with_training(request, use) : with_training_stage(request, *own, use);
  }
  if (own == nullptr) return with_forward(request, use);
  return with_forward({.graph = own->graph,
                       .index = own->index,
                       .dtype = request.dtype,
                       .n = request.n,
                       .pass = Pass::kForward,
                       .options = request.options},
                      use);
}

void check_bounds(const CompileRequest& request) {
  if (request.options.bounds == nullptr || request.dtype == DType::kFloat32) return;
  throw Error(ErrorKind::kConfig, "model: found another dtype than float32, in which alone values are compressed");
}

bool reads(const Graph& graph, ValueId id) {
  if (std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end()) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const std::vector<ValueId> read = inputs_of(node);
    return std::find(read.begin(), read.end(), id) != read.end();
  });
}

// Parts the plan's inputs and outputs into the graph's and those that travel. Inputs that no call reads are undefined.
CompiledStage parted(CompiledGraph plan, const StageGraph& own) {
  const auto taken = [](std::vector<Tensor>& from, std::size_t count) {
    std::vector<Tensor> tail(from.end() - static_cast<std::ptrdiff_t>(count), from.end());
    from.resize(from.size() - count);
    return tail;
  };
  CompiledStage stage;
  stage.given = taken(plan.inputs, own.given.size());
  stage.received = taken(plan.inputs, own.received.size());
  stage.returned = taken(plan.outputs, own.returned.size());
  stage.sent = taken(plan.outputs, own.sent.size());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!reads(own.graph, own.graph.inputs[i])) plan.inputs[i] = {};
  }
  stage.plan = std::move(plan);
  return stage;
}

}  // namespace

CompiledStage compile(const CompileRequest& request) {
  const bool training = request.pass == Pass::kTraining;
  if (training) check_bounds(request);
  const Recompute recompute = training ? request.options.recompute : 0;
  const auto finished = [&](Builder& b) { return b.finish(b.graph().outputs, recompute); };
  if (!request.stage) return {with_compiled(request, nullptr, finished)};
  const StageGraph own = stage_of(request);
  return parted(with_compiled(request, &own, finished), own);
}

std::vector<std::size_t> arena_sizes(const CompileRequest& request, std::span<const Recompute> recompute) {
  const auto sizes = [&](Builder& b) {
    std::vector<std::size_t> bytes;
    for (const Recompute one : recompute) bytes.push_back(b.arena_bytes(b.graph().outputs, one));
    return bytes;
  };
  if (!request.stage) return with_compiled(request, nullptr, sizes);
  const StageGraph own = stage_of(request);
  return with_compiled(request, &own, sizes);
}

}  // namespace hfta::fusion::cpu
