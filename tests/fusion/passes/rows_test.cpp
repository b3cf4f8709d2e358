// Whoever is said to be a function of one sample is: checked by running it.
#include "fusion/passes/rows.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <numeric>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "fusion/eager/program.hpp"
#include "fusion/eager/run_numbers.hpp"
#include "fusion/op_rows.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/slots/scalar_type.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/eager/op_cases.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 4;

std::vector<at::Tensor> weights_of(const Graph& graph) {
  std::vector<at::Tensor> weights;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    at::Tensor values = counted_normal(weight.shape, DType::kFloat64, 900 + i);
    if (weight.init.kind == Init::Kind::kOnes) values = values.abs().add(0.5);
    weights.push_back(values.to(scalar_type(weight.dtype)));
  }
  return weights;
}

std::vector<at::Tensor> run(Graph graph, const std::vector<ValueId>& outputs, const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_gradients;
  graph.outputs = outputs;
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const std::vector<at::Tensor> weights = weights_of(graph);
  const Program program({graph, index}, std::vector<bool>(graph.weights.size(), false), {}, at::kCPU);
  const ValueEnv shared = program.share(inputs, weights);
  const ValueEnv* const one = &shared;
  const SlotRandom random{7, 0};
  const std::vector<std::vector<double>> hypers(1);
  const HostNumbers numbers({&random, 1}, hypers);
  std::vector<at::Tensor> results;
  for (const at::Tensor& t : program.run({&one, 1}, weights, RunContext{0, numbers, at::kCPU})) {
    results.push_back(t.resolve_conj().contiguous());
  }
  return results;
}

// [4k, ...] and [3k, ...] for 4 and 3 samples are [kN, ...].
std::optional<Shape> declared(at::IntArrayRef of_four, at::IntArrayRef of_three) {
  if (of_four.size() != of_three.size()) return std::nullopt;
  Shape shape;
  for (std::size_t d = 0; d < of_four.size(); ++d) {
    const bool same = of_four[d] == of_three[d];
    if (!same && of_four[d] * 3 != of_three[d] * 4) return std::nullopt;
    shape.push_back(same ? of_four[d] : -of_four[d] / 4);
  }
  return shape;
}

struct Found {
  Graph graph;
  std::vector<at::Tensor> inputs;
  std::vector<ValueId> outputs;  // of the call in question
  std::vector<DependsOn> depends_on;
};

// The case with its results' sizes written down, as an exporter would; nullopt: its sizes are literals.
std::optional<Found> analysed(const OpCase& op_case) {
  const Model model = model_of(op_case);
  Found found{with_complete_arguments(model.graph), {}, {}, {}};
  for (const SampleArray& all : model.batch.parts.front().inputs) found.inputs.push_back(all.range(0, kSamples));
  std::vector<at::Tensor> three;
  for (const at::Tensor& input : found.inputs) three.push_back(input.narrow(0, 0, 3));
  for (std::size_t i = 0; i < found.graph.nodes.size(); ++i) {
    if (found.graph.nodes[i].path != "op") continue;
    for (const ValueId id : found.graph.nodes[i].outputs) {
      if (id != kNoValue) found.outputs.push_back(id);
    }
    found.graph.nodes.resize(i + 1);
  }
  try {
    const std::vector<at::Tensor> a = run(found.graph, found.outputs, found.inputs),
                                  b = run(found.graph, found.outputs, three);
    for (std::size_t o = 0; o < a.size(); ++o) {
      const auto shape = declared(a[o].sizes(), b[o].sizes());
      if (!shape) return std::nullopt;
      found.graph.values[static_cast<std::size_t>(found.outputs[o])].shape = *shape;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  found.depends_on = dependence_of(found.graph, std::vector<bool>(found.graph.weights.size(), true));
  return found;
}

CaseArg of(From from, Shape shape) { return {{}, {{std::move(shape), from}}}; }

// Products of samples with what is known, in both orders, and forms that evaluation takes.
std::vector<OpCase> further_cases() {
  const From slot = From::kSlot, known = From::kFrozen;
  const CaseArg nothing{}, off{Arg(false)};
  return {
      {"aten::matmul", {of(slot, {kBatch, 3, 4}), of(known, {4, 5})}},
      {"aten::matmul", {of(slot, {kBatch, 4}), of(known, {4, 5})}},
      {"aten::matmul", {of(slot, {kBatch, 3, 4}), of(known, {4})}},
      {"aten::matmul", {of(slot, {kBatch, 4}), of(known, {4})}},
      {"aten::matmul", {of(known, {5, 3}), of(slot, {kBatch, 3, 4})}},
      {"aten::matmul", {of(slot, {kBatch, 2, 3, 4}), of(slot, {kBatch, 2, 4, 3})}},
      {"aten::matmul", {of(known, {3, 4}), of(slot, {kBatch, 2, 4, 3})}},
      {"aten::bmm", {of(slot, {kBatch, 3, 4}), of(slot, {kBatch, 4, 2})}},
      {"aten::baddbmm", {of(slot, {kBatch, 3, 2}), of(slot, {kBatch, 3, 4}), of(slot, {kBatch, 4, 2})}},
      {"aten::mm", {of(slot, {kBatch, 4}), of(known, {4, 5})}},
      {"aten::addmm", {of(known, {5}), of(slot, {kBatch, 4}), of(known, {4, 5})}},
      {"aten::addmm", {of(known, {1, 5}), of(slot, {kBatch, 4}), of(known, {4, 5})}},
      {"aten::batch_norm",
       {of(slot, {kBatch, 3, 4}),
        of(known, {3}),
        of(known, {3}),
        of(From::kBuffer, {3}),
        of(From::kBuffer, {3}),
        off,
        {Arg(0.1)},
        {Arg(1e-5)},
        off}},
      {"aten::index.Tensor", {of(known, {3, 4}), {{}, {{{kBatch, 2}, From::kIndex}}, true}}},
      {"aten::group_norm", {of(slot, {kBatch, 4, 3}), {Arg(std::int64_t{2})}, nothing, nothing, {Arg(1e-5)}, off}},
  };
}

// A sample's part of a result.
at::Tensor part_of(const at::Tensor& result, const SampleDim& at, std::int64_t sample) {
  return result.narrow(static_cast<std::int64_t>(at.dim), sample * at.parts, at.parts);
}

bool same(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-12, 1e-12, /*equal_nan=*/true); }

// Each other sample's part is what it was, whatever sample 1 is, and whoever is missing.
void check_apart(const Found& found, std::size_t o) {
  const SampleDim at = *sample_dim(found.graph.values[static_cast<std::size_t>(found.outputs[o])]);
  const at::Tensor before = run(found.graph, found.outputs, found.inputs)[o];
  std::vector<at::Tensor> changed, fewer;
  for (const at::Tensor& input : found.inputs) {
    at::Tensor other = input.clone();
    other.select(0, 1).copy_(input.select(0, 2));
    changed.push_back(other);
    fewer.push_back(input.narrow(0, 2, 2));
  }
  const at::Tensor after = run(found.graph, found.outputs, changed)[o];
  const at::Tensor last = run(found.graph, found.outputs, fewer)[o];
  for (const std::int64_t sample : {0, 2, 3}) CHECK(same(part_of(after, at, sample), part_of(before, at, sample)));
  CHECK(same(part_of(after, at, 1), part_of(before, at, 2)));
  for (const std::int64_t sample : {2, 3}) CHECK(same(part_of(last, at, sample - 2), part_of(before, at, sample)));
}

Graph graph_of(const Shape& input, DType dtype = DType::kFloat64) {
  Graph graph;
  graph.values = {{"x", input, dtype}};
  graph.inputs = {0};
  return graph;
}

ValueId add_call(Graph& graph, const std::string& op, std::vector<Arg> args, const Shape& shape, bool number = false) {
  graph.values.push_back({fmt::format("v{}", graph.values.size()), shape, DType::kFloat64, number});
  const auto id = static_cast<ValueId>(graph.values.size() - 1);
  graph.nodes.push_back({op, std::move(args), {id}, "m", "test"});
  return id;
}

DependsOn last_of(const Graph& graph) { return dependence_of(with_complete_arguments(graph), {}).back(); }

using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("an op that is said to keep samples apart does, in every case of the table of rules") {
  std::set<std::string> proved;
  std::vector<OpCase> cases = op_cases();
  for (OpCase& more : further_cases()) cases.push_back(std::move(more));
  for (const OpCase& op_case : cases) {
    INFO(op_case.op << " " << op_case.note);
    const std::optional<Found> found = analysed(op_case);
    if (!found) continue;
    for (std::size_t o = 0; o < found->outputs.size(); ++o) {
      if (found->depends_on[static_cast<std::size_t>(found->outputs[o])] != DependsOn::kSample) continue;
      proved.insert(op_case.op);
      check_apart(*found, o);
    }
  }
  INFO(proved.size() << " ops");
  CHECK(proved.size() >= 120);
  for (const char* op : {"aten::conv2d", "aten::linear", "aten::layer_norm", "aten::bmm", "aten::matmul", "aten::addmm",
                         "aten::batch_norm", "aten::index.Tensor", "aten::embedding",
                         "aten::scaled_dot_product_attention", "aten::softmax.int", "aten::relu", "aten::add.Tensor"}) {
    INFO(op);
    CHECK(proved.contains(op));
  }
}

TEST_CASE("calls that mix samples end what is known of one") {
  struct Case {
    const char* op;
    std::vector<Arg> args;
    Shape shape;
    DependsOn expected;
  };
  constexpr ValueId x = 0;  // [N, 3, 4]
  const std::vector<Case> cases = {
      {"aten::softmax.int", {x, std::int64_t{2}}, {kBatch, 3, 4}, DependsOn::kSample},
      {"aten::softmax.int", {x, std::int64_t{-3}}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::cumsum", {x, std::int64_t{0}}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::mean.dim", {x, Ints{1}, false}, {kBatch, 4}, DependsOn::kSample},
      {"aten::mean.dim", {x, Ints{0}, true}, {1, 3, 4}, DependsOn::kMore},
      {"aten::mean", {x}, {}, DependsOn::kMore},
      {"aten::flip", {x, Ints{0}}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::flip", {x, Ints{1, 2}}, {kBatch, 3, 4}, DependsOn::kSample},
      {"aten::roll", {x, Ints{1}, Ints{0}}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::select.int", {x, std::int64_t{0}, std::int64_t{0}}, {3, 4}, DependsOn::kMore},
      {"aten::select.int", {x, std::int64_t{1}, std::int64_t{0}}, {kBatch, 4}, DependsOn::kSample},
      {"aten::slice.Tensor", {x, std::int64_t{0}, std::int64_t{1}}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::slice.Tensor", {x, std::int64_t{0}, std::int64_t{0}, INT64_MAX}, {kBatch, 3, 4}, DependsOn::kSample},
      {"aten::permute", {x, Ints{1, 0, 2}}, {3, kBatch, 4}, DependsOn::kSample},
      {"aten::reshape", {x, Ints{-1, 4}}, {-3, 4}, DependsOn::kSample},
      {"aten::reshape", {x, Ints{-1, 12}}, {kBatch, 12}, DependsOn::kSample},
      {"aten::reshape", {x, Ints{3, -1, 4}}, {3, kBatch, 4}, DependsOn::kMore},
      {"aten::cat", {std::vector<ValueId>{x, x}, std::int64_t{0}}, {-2, 3, 4}, DependsOn::kMore},
      {"aten::cat", {std::vector<ValueId>{x, x}, std::int64_t{1}}, {kBatch, 6, 4}, DependsOn::kSample},
      {"aten::repeat", {x, Ints{2, 1, 1}}, {-2, 3, 4}, DependsOn::kMore},
      {"aten::repeat", {x, Ints{1, 2, 1}}, {kBatch, 6, 4}, DependsOn::kSample},
      {"aten::rand_like", {x}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::dropout", {x, 0.5, true}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::dropout", {x, 0.5, false}, {kBatch, 3, 4}, DependsOn::kSample},
      {"aten::relu_", {x}, {kBatch, 3, 4}, DependsOn::kMore},
      {"aten::dropout", {x, 0.0, true}, {kBatch, 3, 4}, DependsOn::kSample},
  };
  for (const Case& c : cases) {
    INFO(c.op << " " << to_text(c.shape));
    Graph graph = graph_of({kBatch, 3, 4});
    add_call(graph, c.op, c.args, c.shape);
    CHECK(last_of(graph) == c.expected);
  }
}

TEST_CASE("products of a batch with itself mix its samples") {
  Graph graph = graph_of({kBatch, 4});
  const ValueId turned = add_call(graph, "aten::t", {ValueId{0}}, {4, kBatch});
  CHECK(last_of(graph) == DependsOn::kSample);
  add_call(graph, "aten::matmul", {ValueId{0}, turned}, {kBatch, kBatch});
  CHECK(last_of(graph) == DependsOn::kMore);
  Graph each = graph_of({kBatch, 3, 4});
  const ValueId own = add_call(each, "aten::permute", {ValueId{0}, Ints{0, 2, 1}}, {kBatch, 4, 3});
  add_call(each, "aten::matmul", {ValueId{0}, own}, {kBatch, 3, 3});
  CHECK(last_of(each) == DependsOn::kSample);
}

TEST_CASE("samples that a sequence-first attention lays between times are found again") {
  Graph graph = graph_of({kBatch, 3, 4});
  const ValueId turned = add_call(graph, "aten::permute", {ValueId{0}, Ints{1, 0, 2}}, {3, kBatch, 4});
  const ValueId rows = add_call(graph, "aten::reshape", {turned, Ints{-1, 4}}, {-3, 4});
  CHECK(last_of(graph) == DependsOn::kSample);
  Graph mixed = graph, summed = graph;
  add_call(graph, "aten::reshape", {rows, Ints{3, -1, 4}}, {3, kBatch, 4});
  CHECK(last_of(graph) == DependsOn::kSample);
  add_call(mixed, "aten::reshape", {rows, Ints{-1, 3, 4}}, {kBatch, 3, 4});  // not what it was
  CHECK(last_of(mixed) == DependsOn::kMore);
  const ValueId own = add_call(summed, "aten::reshape", {ValueId{0}, Ints{-1, 4}}, {-3, 4});
  add_call(summed, "aten::add.Tensor", {own, rows}, {-3, 4});  // another sample's
  CHECK(last_of(summed) == DependsOn::kMore);
}

TEST_CASE("the number of samples may be a size, and nothing else") {
  Graph graph = graph_of({kBatch, 4});
  const ValueId n = add_call(graph, "number::size", {ValueId{0}, std::int64_t{0}}, {}, true);
  CHECK(last_of(graph) == DependsOn::kPlaces);
  Graph viewed = graph, divided = graph, counted = graph;
  add_call(viewed, "aten::view", {ValueId{0}, std::vector<Size>{{0, n}, {2}, {2}}}, {kBatch, 2, 2});
  CHECK(last_of(viewed) == DependsOn::kSample);
  add_call(divided, "aten::div.Scalar", {ValueId{0}, n}, {kBatch, 4});
  CHECK(last_of(divided) == DependsOn::kMore);
  const ValueId places = add_call(counted, "aten::arange", {n}, {kBatch});
  CHECK(last_of(counted) == DependsOn::kPlaces);
  Graph added = counted, looked = counted;
  const ValueId column = add_call(added, "aten::unsqueeze", {places, std::int64_t{1}}, {kBatch, 1});
  CHECK(last_of(added) == DependsOn::kPlaces);
  add_call(added, "aten::add.Tensor", {ValueId{0}, column}, {kBatch, 4});
  CHECK(last_of(added) == DependsOn::kMore);
  looked.values[static_cast<std::size_t>(places)].dtype = DType::kInt64;
  add_call(looked, "aten::index.Tensor", {ValueId{0}, std::vector<ValueId>{places}}, {kBatch, 4});
  CHECK(last_of(looked) == DependsOn::kSample);
}

TEST_CASE("rows name ops that a model may use, each once") {
  std::istringstream names(ops_with_rows());
  std::set<std::string> seen;
  for (std::string name; names >> name;) {
    INFO(name);
    CHECK(op_traits("aten::" + name) != nullptr);
    CHECK(seen.insert(name).second);
    CHECK(rows_of("aten::" + name + ".Tensor") != Rows::kUnknown);
  }
  CHECK(rows_of("aten::relu_") == Rows::kElements);
  CHECK(rows_of("aten::inverse") == Rows::kUnknown);
}

}  // namespace hfta::fusion::testing
