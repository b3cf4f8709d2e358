#include "fusion/cpu/parts.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/known.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/part_graph.hpp"
#include "fusion/graph/uses.hpp"

namespace hfta::fusion::cpu {
namespace {

std::vector<std::string> ops_of(const Graph& graph, const std::vector<std::size_t>& nodes) {
  std::vector<std::string> ops;
  for (const std::size_t i : nodes) {
    const std::string& op = graph.nodes[i].op;
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
  }
  return ops;
}

bool reads(const Node& node, ValueId id) {
  const std::vector<ValueId> inputs = inputs_of(node);
  return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
}

// Whether the loss depends on an input or output of the part through the outputs that have a gradient. `reaches`: its
// place is looked up there.
bool reached_from(const Part& part, const std::vector<Part::Gradient>& given,
                  const std::vector<bool> Part::Output::*reaches, std::size_t place) {
  for (std::size_t o = 0; o < given.size(); ++o) {
    if (given[o].tensor.defined() && (part.outputs()[o].*reaches)[place]) return true;
  }
  return false;
}

// What is repeated in memory, once.
Tensor without_repeats(const Tensor& t) {
  Tensor once = t;
  for (std::int64_t d = 0; d < t.dim(); ++d) {
    if (t.stride(d) == 0 && t.size(d) > 1) once = once.sliced(d, 0, 1);
  }
  return once;
}

// Values as they lay at export: what is a view and what is a copy follows from that, which matters where one is
// written. Dimensions that repeat still do: what is made of them lies as the other tensors that it is made of.
void lay_out(Builder& b, const std::vector<ValueId>& values) {
  for (const ValueId id : values) {
    const std::vector<std::int64_t>& order = b.graph().values[static_cast<std::size_t>(id)].order;
    const Tensor value = b.value(id), once = without_repeats(value);
    const bool ordered = !order.empty() && static_cast<std::int64_t>(order.size()) == value.dim();
    b.bind(id, (ordered ? b.in_order(once, order) : b.contiguous(once)).expanded(value.sizes));
  }
}

// Emits the part's forward and, where a gradient is wanted, its backward.
void emit_kernels(Builder& b, const std::shared_ptr<const Part>& part, std::size_t place,
                  const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  for (const Tensor& input : inputs) b.hold(input);  // the library may keep it, and may write in its place
  std::vector<Tensor> touched = inputs, with_gradient;
  touched.insert(touched.end(), outputs.begin(), outputs.end());
  b.emit(touched, [=](const Run& run) { part->forward(run, inputs, outputs, run.kept[place]); });
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (part->outputs()[o].has_gradient()) with_gradient.push_back(outputs[o]);
  }
  b.differentiable(inputs, with_gradient, [=, &b] {
    std::vector<Part::Gradient> given, wanted;
    std::vector<Tensor> used = inputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool has = part->outputs()[o].has_gradient();
      given.push_back({has ? b.gradient(outputs[o]).value_or(Tensor{}) : Tensor{}});
      used.push_back(given.back().tensor);
    }
    if (std::none_of(given.begin(), given.end(), [](const auto& g) { return g.tensor.defined(); })) return;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool reached = reached_from(*part, given, &Part::Output::reaches, i);
      const Builder::Part to = reached ? b.contribute_if_wanted(inputs[i]) : Builder::Part{};
      wanted.push_back({to.tensor, to.add});
      used.push_back(to.tensor);
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (reached_from(*part, given, &Part::Output::reaches_output, o)) b.set_reached(outputs[o]);
    }
    b.emit(used, [=](const Run& run) { part->backward(run, given, wanted, run.kept[place]); });
  });
}

}  // namespace

Parts::Parts(const Graph& graph, const Library* library) : graph_(graph), library_(library), memory_(memory_of(graph)) {
  known_.resize(graph.nodes.size());
  if (library_ != nullptr) classify();
}

// What is given may give more: writes within a range have ranges of their own, and a call that is no longer known may
// lie in a range that was given before.
void Parts::classify() {
  std::size_t before = 0;
  do {
    before = by_library_.size() + not_known_.size();
    known_ = known_calls(graph_, not_known_);
    std::set<std::pair<std::size_t, std::size_t>> given;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const bool compiled = known_[i] || is_number_op(graph_.nodes[i].op) || has_compiler(graph_, graph_.nodes[i]);
      if (compiled && !by_library_.contains(i)) continue;
      const NodeRange range = range_of(i);
      if (given.emplace(range.first, range.last).second) give(range);
    }
  } while (by_library_.size() + not_known_.size() > before);
  find_runs();
}

NodeRange Parts::range_of(std::size_t node) {
  const NodeRange alone{node, node};
  const ValueId written = written_by(graph_.nodes[node]);
  if (written == kNoValue || unseen_.contains(node)) return alone;
  const ValueId memory = memory_[static_cast<std::size_t>(written)];
  if (ranges_.contains(memory)) return ranges_.at(memory);
  if (seen_later(graph_, node)) return ranges_[memory] = range_of_writes(graph_, node);
  unseen_.insert(node);
  return alone;
}

// A known call of the range can run before. One that overwrites what others may read there cannot.
void Parts::give(const NodeRange& range) {
  for (std::size_t i = range.first; i <= range.last; ++i) {
    if (is_number_op(graph_.nodes[i].op)) continue;
    if (!known_[i]) {
      by_library_.insert(i);
    } else if (overwrites(graph_.nodes[i].op)) {
      not_known_.insert(i);
    }
  }
}

bool Parts::hand_over(std::size_t node) {
  if (library_ == nullptr || by_library_.contains(node) || is_number_op(graph_.nodes[node].op)) return false;
  if (known_[node]) {
    not_known_.insert(node);
  } else {
    give(range_of(node));
  }
  classify();
  return true;
}

// Nodes follow one another in a part if what stands between them can run before: numbers of what is there already.
void Parts::find_runs() {
  runs_.clear();
  std::vector<std::size_t> run;
  std::set<ValueId> made;
  const auto close = [&] {
    if (!run.empty()) runs_[run.back()] = run;
    run.clear();
    made.clear();
  };
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (by_library_.contains(i)) {
      run.push_back(i);
      made.insert(node.outputs.begin(), node.outputs.end());
      continue;
    }
    const std::vector<ValueId> inputs = inputs_of(node);
    const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return made.contains(id); });
    const bool passes = (is_number_op(node.op) && !reads) || (known_[i] && !overwrites(node.op));
    if (!passes) close();
  }
  close();
}

bool Parts::is_cut(const std::vector<std::size_t>& run) {
  return std::any_of(run.begin(), run.end(),
                     [&](std::size_t node) { return *by_library_.lower_bound(range_of(node).first) < run.front(); });
}

void Parts::begin(Builder& b) {
  computed_.clear();
  given_.clear();
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (takes(i)) b.keep_apart(i);
  }
  values_ = library_ == nullptr ? nullptr : library_->known_values();
}

void Parts::compile(Builder& b, std::size_t node) {
  if (!known_[node]) {
    const auto run = runs_.find(node);
    if (run == runs_.end()) return;
    if (is_cut(run->second)) LoweringContext(b, node).fail("a size that is read within them parts a tensor's writes");
    for (const std::size_t i : run->second) bind_known(b, i);
    return emit(b, run->second);
  }
  const LoweringContext site(b, node);
  for (const Weight& weight : graph_.weights) {
    if (reads(graph_.nodes[node], weight.value) && given_.insert(weight.value).second) values_->give(weight);
  }
  std::vector<Tensor> shapes(graph_.values.size());
  for (const ValueId id : inputs_of(graph_.nodes[node])) {
    if (b.bound(id) && !computed_.contains(id) && !given_.contains(id))
      shapes[static_cast<std::size_t>(id)] = b.value(id);
  }
  if (!values_->run(with_literals(site), shapes)) site.fail("it cannot be computed beforehand");
  if (overwrites(graph_.nodes[node].op)) {
    for (const ValueId id : computed_) b.bind(id, {});
  }
  for (const ValueId id : graph_.nodes[node].outputs) {
    if (id != kNoValue) computed_.insert(id);
  }
}

void Parts::bind_known(Builder& b, std::size_t node) {
  for (const ValueId id : inputs_of(graph_.nodes[node])) {
    if (!b.bound(id) && computed_.contains(id)) bind_known_value(b, id);
  }
}

void Parts::bind_known_outputs(Builder& b) {
  for (const ValueId id : graph_.outputs) {
    if (!b.bound(id) && computed_.contains(id)) bind_known_value(b, id);
  }
}

void Parts::bind_known_value(Builder& b, ValueId id) {
  KnownValues::Snapshot snapshot = values_->snapshot(id);
  Dims stored = snapshot.sizes;
  for (std::size_t d = 0; d < stored.size(); ++d) {
    if (snapshot.repeated[d]) stored[d] = 1;
  }
  b.bind(id, b.constant(stored, snapshot.dtype, std::move(snapshot.bytes)).expanded(snapshot.sizes));
}

std::vector<ValueId> Parts::read_by(const std::vector<std::size_t>& nodes) const {
  std::vector<ValueId> read;
  std::set<ValueId> seen;
  for (const std::size_t i : nodes) {
    for (const ValueId id : inputs_of(graph_.nodes[i])) {
      if (!graph_.values[static_cast<std::size_t>(id)].number && seen.insert(id).second) read.push_back(id);
    }
    seen.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
  }
  return read;
}

std::vector<ValueId> Parts::given_by(const std::vector<std::size_t>& nodes) const {
  std::set<ValueId> wanted(graph_.outputs.begin(), graph_.outputs.end());
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (i >= nodes.front() && i <= nodes.back() && std::binary_search(nodes.begin(), nodes.end(), i)) continue;
    for (const ValueId id : inputs_of(graph_.nodes[i])) wanted.insert(id);
  }
  std::vector<ValueId> given;
  for (const std::size_t i : nodes) {
    for (const ValueId id : graph_.nodes[i].outputs) {
      const bool fresh = std::find(given.begin(), given.end(), id) == given.end();
      if (id != kNoValue && fresh && wanted.contains(id)) given.push_back(id);
    }
  }
  return given;
}

void Parts::emit(Builder& b, const std::vector<std::size_t>& nodes) {
  const std::vector<ValueId> read = read_by(nodes), given = given_by(nodes);
  const auto writes = [&](std::size_t i) { return overwrites(graph_.nodes[i].op); };
  std::vector<Tensor> before, inputs, outputs;
  for (const ValueId id : read) before.push_back(b.value(id));
  if (std::any_of(nodes.begin(), nodes.end(), writes)) lay_out(b, read);
  std::shared_ptr<const Part>& part = made_[nodes];
  if (part == nullptr) {
    part = library_->part(part_graph(b, nodes, read, given), b.training());
  }
  for (const ValueId id : read) inputs.push_back(b.value(id));
  // Others read what was there: whether a gradient reaches a value is not asked of the part's own copy.
  for (std::size_t i = 0; i < read.size(); ++i) b.bind(read[i], before[i]);
  for (std::size_t o = 0; o < given.size(); ++o) {
    const Part::Output& output = part->outputs().at(o);
    outputs.push_back(b.fresh(output.sizes, output.dtype));
    outputs.back().strides = output.strides;
    b.bind(given[o], outputs.back());
  }
  emit_kernels(b, part, b.add_part(ops_of(graph_, nodes)), inputs, outputs);
}

}  // namespace hfta::fusion::cpu
