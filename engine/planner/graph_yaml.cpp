// A graph of costs as YAML.

#include <fmt/format.h>

#include <unordered_map>

#include "engine/config/typed_file.hpp"
#include "engine/planner/nets.hpp"
#include "engine/planner/readers.hpp"
#include "engine/topology/topology.hpp"

namespace hfta::engine::planner {
namespace {

using configuration::Node;
using configuration::TypedFile;

class Reader {
 public:
  explicit Reader(const TypedFile& file) : file_(file) {}

  Op op(const Node& node) {
    if (node.kind != Node::Kind::kMap) file_.wrong(node, "ops", "{name: ..., flops: ..., weights: ..., outputs: ...}");
    file_.check_keys(node, {"name", "flops", "weights", "outputs", "inputs"});
    const Node* name = node.find("name");
    if (name == nullptr) file_.wrong(node, "ops.name", "a name");
    Op op;
    op.name = plain_name(word(*name, "ops.name"));
    op.inputs = inputs(node);
    op.flops = cost(node, "flops");
    op.weights = cost(node, "weights");
    op.outputs = cost(node, "outputs");
    if (!numbers_.emplace(op.name, static_cast<int>(numbers_.size())).second) {
      file_.wrong(*name, "ops.name", "each name once");
    }
    return op;
  }

 private:
  const std::string& word(const Node& node, const std::string& key) {
    if (node.kind != Node::Kind::kScalar || node.is_null()) file_.wrong(node, key, "a name");
    return node.text;
  }
  double cost(const Node& node, const std::string& key) {
    const Node* value = node.find(key);
    return value == nullptr ? 0 : file_.number(*value, "ops." + key, 0, kMostCost, "a number");
  }
  std::vector<int> inputs(const Node& node) {
    const int before = static_cast<int>(numbers_.size());
    const Node* names = node.find("inputs");
    if (names == nullptr) return before == 0 ? std::vector<int>{} : std::vector<int>{before - 1};
    std::vector<int> found;
    for (const Node& name : file_.list(*names, "ops.inputs", "a list of names")) {
      const auto input = numbers_.find(plain_name(word(name, "ops.inputs")));
      if (input == numbers_.end()) file_.wrong(name, "ops.inputs", "the name of an op that stands before it");
      found.push_back(input->second);
      if (++edges_ > kMostInputs) file_.wrong(*names, "ops.inputs", fmt::format("at most {} of all ops", kMostInputs));
    }
    return found;
  }

  const TypedFile& file_;
  int edges_ = 0;
  std::unordered_map<std::string, int> numbers_;
};

}  // namespace

Graph read_graph(std::string_view text, const std::string& name) {
  const TypedFile file(name);
  const Node root = file.root(text, "samples: ... and ops: ...");
  file.check_keys(root, {"name", "samples", "slots", "bytes", "states", "ops"});
  Graph graph;
  const Node* called = root.find("name");
  if (called != nullptr && called->kind != Node::Kind::kScalar) file.wrong(*called, "name", "a name");
  graph.name = plain_name(called != nullptr ? called->text : file.name());
  const Node* samples = root.find("samples");
  if (samples == nullptr) file.wrong(root, "samples", "the number of samples of a batch");
  graph.samples = file.integer(*samples, "samples", 1, kMostSamples);
  if (const Node* slots = root.find("slots")) graph.slots = file.integer(*slots, "slots", 1, kMostSlots);
  graph.bytes = file.number_of(root, "bytes", graph.bytes, 0.125, 16, "bytes of a number");
  graph.states = file.number_of(root, "states", graph.states, 0, 16, "numbers for each weight");
  const Node* ops = root.find("ops");
  const std::string wanted = fmt::format("a list of 1 to {} ops", kMostOps);
  if (ops == nullptr) file.wrong(root, "ops", wanted);
  const std::vector<Node>& items = file.list(*ops, "ops", wanted);
  if (items.empty() || items.size() > kMostOps) file.wrong(*ops, "ops", wanted);
  Reader reader(file);
  for (const Node& item : items) graph.ops.push_back(reader.op(item));
  return graph;
}

Graph graph_named(const std::string& word) {
  for (const char* const ending : {".yaml", ".yml", ".json"}) {
    if (word.ends_with(ending)) return read_graph(configuration::read_text(word), word);
  }
  return net_named(word);
}

}  // namespace hfta::engine::planner
