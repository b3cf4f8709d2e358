#include "fusion/cpu/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/cpu/aliases.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::cpu {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

// The numbers that the node reads, written out.
class Literals {
 public:
  explicit Literals(const std::map<ValueId, Number>& numbers) : numbers_(numbers) {}

  void put_into(Node& node) const {
    for (Arg& arg : node.args) {
      if (const auto* id = std::get_if<ValueId>(&arg); id != nullptr && numbers_.contains(*id)) {
        arg = std::visit([](auto x) { return Arg(x); }, numbers_.at(*id));
      } else if (auto* sizes = std::get_if<std::vector<Size>>(&arg)) {
        for (Size& size : *sizes) size = written_out(size);
      }
    }
  }

 private:
  [[nodiscard]] Size written_out(const Size& size) const {
    const auto found = numbers_.find(size.value);
    if (found == numbers_.end()) return size;
    const auto* whole = std::get_if<std::int64_t>(&found->second);
    return whole == nullptr ? size : Size{*whole, kNoValue};
  }

  const std::map<ValueId, Number>& numbers_;
};

}  // namespace

Stages::Stages(const Graph& graph, const StageCut& cut) : graph_(graph), cut_(cut) {
  find_values();
  find_sent();
  check_writes();
}

void Stages::find_values() {
  of_value_.assign(graph_.values.size(), StageCut::kEvery);
  for (std::size_t i = 0; i < graph_.weights.size(); ++i) of_value_[at(graph_.weights[i].value)] = cut_.of_weight[i];
  for (const Node& node : graph_.nodes) {
    int stage = StageCut::kEvery;
    if (!is_number_op(node.op)) {  // numbers are known when a graph is compiled
      for (const ValueId id : inputs_of(node)) stage = std::max(stage, stage_of(id));
    }
    of_node_.push_back(stage);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) of_value_[at(id)] = stage;
    }
  }
}

void Stages::find_sent() {
  const auto last = static_cast<std::size_t>(cut_.stages) - 1;
  std::vector<std::set<ValueId>> sent(last + 1);
  const auto read = [&](ValueId id, int reader) {
    if (stage_of(id) == StageCut::kEvery) return;
    for (int s = stage_of(id); s < reader; ++s) sent[static_cast<std::size_t>(s)].insert(id);
  };
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const ValueId id : inputs_of(graph_.nodes[i])) read(id, of_node_[i]);
  }
  for (const ValueId id : graph_.outputs) read(id, static_cast<int>(last));
  for (const auto& ids : sent) sent_.emplace_back(ids.begin(), ids.end());
}

std::vector<ValueId> Stages::all_sent() const {
  std::set<ValueId> all;
  for (const auto& ids : sent_) all.insert(ids.begin(), ids.end());
  return {all.begin(), all.end()};
}

// A value that is sent is a copy, made when its stage has run: a call that writes to it writes to nobody else's memory,
// and who is sent it reads what the stage's calls have made of it by then.
void Stages::check_writes() const {
  const std::vector<ValueId> sent = all_sent();
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const ValueId id : written_for_others(i)) {
      if (stage_of(id) == of_node_[i] && !std::binary_search(sent.begin(), sent.end(), id)) continue;
      const Node& node = graph_.nodes[i];
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: {}: it writes in place what two stages of a pipeline read, wanted "
                              "a model in which each has its own",
                              printable(node.where), printable(node.op)));
    }
  }
}

// The values whose memory the call writes, if anybody but who reads its output sees that.
std::set<ValueId> Stages::written_for_others(std::size_t node) const {
  const Node& call = graph_.nodes[node];
  const OpTraits* const traits = op_traits(call.op);
  if (traits != nullptr && !traits->statistics.mean.empty()) {
    const std::vector<ValueId> read = inputs_of(call);
    std::set<ValueId> running;
    for (const Weight& weight : graph_.weights) {
      const bool reads = std::find(read.begin(), read.end(), weight.value) != read.end();
      if (reads && !weight.trained && stage_of(weight.value) != StageCut::kEvery) running.insert(weight.value);
    }
    return running;
  }
  const auto* const to = call.args.empty() ? nullptr : std::get_if<ValueId>(&call.args.front());
  if (!overwrites(call.op) || to == nullptr) return {};
  const std::set<ValueId> shared = sharing_memory(graph_, *to, node);
  const int stage = of_node_[node];
  const bool is_sent = stage != StageCut::kEvery && std::any_of(sent(stage).begin(), sent(stage).end(),
                                                                [&](ValueId id) { return shared.contains(id); });
  return is_sent || seen_later(graph_, node) ? shared : std::set<ValueId>{};
}

// The calls of the stage, and of those that every stage runs what it needs: what it reads, and what writes to that.
std::vector<bool> Stages::nodes_of(int number) const {
  const std::vector<ValueId> memory = memory_of(graph_);
  std::vector<bool> nodes(graph_.nodes.size(), false), needed(graph_.values.size(), false);
  const auto need = [&](ValueId id) { needed[at(memory[at(id)])] = true; };
  const auto is_needed = [&](ValueId id) { return id != kNoValue && needed[at(memory[at(id)])]; };
  if (number == cut_.stages - 1) {
    for (const ValueId id : graph_.outputs) need(id);
  }
  for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
    const Node& node = graph_.nodes[i];
    if (is_number_op(node.op)) continue;
    const std::vector<ValueId> read = inputs_of(node);
    nodes[i] = of_node_[i] == number;
    if (of_node_[i] == StageCut::kEvery) {
      nodes[i] = std::any_of(node.outputs.begin(), node.outputs.end(), is_needed) ||
                 (overwrites(node.op) && !read.empty() && is_needed(read.front()));
    }
    if (nodes[i]) std::for_each(read.begin(), read.end(), need);
  }
  return nodes;
}

std::vector<bool> Stages::weights_of(int number) const {
  const std::vector<bool> nodes = nodes_of(number);
  std::vector<bool> read(graph_.values.size(), false), weights;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    for (const ValueId id : inputs_of(graph_.nodes[i])) read[at(id)] = true;
  }
  for (const Weight& weight : graph_.weights) weights.push_back(read[at(weight.value)]);
  return weights;
}

StageGraph Stages::stage(int number, const std::vector<int>& index, const GraphFacts& facts) const {
  StageGraph own{graph_, {}, {}, {}, {}, {}, {}, {}};
  Graph& graph = own.graph;
  graph.nodes.clear();
  graph.outputs.clear();
  std::map<ValueId, ValueId> here;  // what is received stands for what was sent
  const auto mapped = [&](ValueId id) { return here.contains(id) ? here.at(id) : id; };
  const auto add_value = [&](ValueId like) {
    const ValueFacts& known = facts.values.at(like);
    graph.values.push_back({graph_.values[at(like)].name, known.sizes, known.dtype});
    return static_cast<ValueId>(graph.values.size()) - 1;
  };
  if (number > 0) {
    for (const ValueId id : sent(number - 1)) own.received.push_back(here[id] = add_value(id));
  }
  for (const ValueId id : sent(number)) {
    own.sent.push_back(mapped(id));
    if (!facts.values.at(id).has_gradient) continue;
    own.given_of.push_back(mapped(id));
    own.given.push_back(add_value(id));
  }
  for (const auto& [id, received] : here) {
    if (!facts.values.at(id).has_gradient) continue;
    own.returned_of.push_back(received);
    own.returned.push_back(add_value(id));
  }
  graph.inputs.insert(graph.inputs.end(), own.received.begin(), own.received.end());
  graph.inputs.insert(graph.inputs.end(), own.given.begin(), own.given.end());
  const std::vector<bool> nodes = nodes_of(number);
  const Literals literals(facts.numbers);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    Node node = graph_.nodes[i];
    literals.put_into(node);
    for (Arg& arg : node.args) for_each_value(arg, [&](ValueId& id) { id = mapped(id); });
    graph.nodes.push_back(std::move(node));
    own.index.push_back(index[i]);
  }
  if (number == cut_.stages - 1) {
    for (const ValueId id : graph_.outputs) graph.outputs.push_back(mapped(id));
  }
  graph.outputs.insert(graph.outputs.end(), own.sent.begin(), own.sent.end());
  graph.outputs.insert(graph.outputs.end(), own.returned.begin(), own.returned.end());
  return own;
}

}  // namespace hfta::fusion::cpu
