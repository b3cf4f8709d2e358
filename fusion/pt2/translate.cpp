#include "fusion/pt2/translate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "fusion/graph/names.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/pt2/arguments.hpp"
#include "fusion/pt2/given_back.hpp"
#include "fusion/pt2/guards.hpp"
#include "fusion/pt2/ops.hpp"
#include "fusion/pt2/prune.hpp"

namespace hfta::fusion::pt2 {
namespace {

/// The names of one graph, and how its nodes run; a graph in a graph has names of its own.
struct Scope {
  Reader graph;
  std::map<std::string, ValueId> values;
  bool no_gradient = false;
};

/// Calls that only wrap a graph: what they wrap is written out in their place.
constexpr std::array<std::string_view, 5> kWrappers = {"wrap_with_set_grad_enabled", "wrap_with_autocast",
                                                       "tag_activation_checkpoint", "invoke_subgraph", "wrap"};

// Names that an argument stands for, in order; "" for a literal.
std::vector<std::string> names_in(const Tagged& argument) {
  const Reader& value = argument.value;
  if (argument.tag == "as_tensor") return {value["name"].text()};
  if (argument.tag == "as_tensors") {
    std::vector<std::string> names;
    for (const Reader& item : value.list()) names.push_back(item["name"].text());
    return names;
  }
  const bool symbol = argument.tag == "as_sym_int" || argument.tag == "as_sym_float" || argument.tag == "as_sym_bool";
  if (symbol && value.has("as_name")) return {value["as_name"].text()};
  return {""};
}

std::vector<std::string> names_in(const std::vector<Tagged>& arguments) {
  std::vector<std::string> all;
  for (const Tagged& argument : arguments) {
    for (std::string& name : names_in(argument)) all.push_back(std::move(name));
  }
  return all;
}

class Translator {
 public:
  Translator(const Reader& program, const Signature& signature, const Parameters& parameters, const Batch& batch)
      : program_(program), signature_(signature), parameters_(parameters), batch_(batch) {}

  Translation run() {
    Scope root{program_["graph_module"]["graph"], {}, false};
    weight_values_.assign(parameters_.weights.size(), kNoValue);
    read_values_ = weight_values_;
    for (const ExportedTensor& input : batch_.inputs) {
      const ValueId value = add_value({input.name, input.shape, input.dtype});
      name_value(root, input.name, value);
      graph().inputs.push_back(value);
    }
    add_nodes(root);
    add_outputs(root);
    add_weights();
    graph().fixed_batch = batch_.fixed;
    graph().largest_batch = batch_.largest;
    graph().limits = {batch_.smallest, guards_from(program_, batch_)};
    drop_unused(graph(), out_.output_values);
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }

  ValueId add_value(Value value) {
    graph().values.push_back(std::move(value));
    return static_cast<ValueId>(graph().values.size()) - 1;
  }

  static void name_value(Scope& scope, const std::string& name, ValueId value) {
    if (!scope.values.try_emplace(name, value).second) {
      scope.graph.fail(fmt::format("found two values of the name '{}'", name));
    }
  }

  // Weights become values where they are first used, so that those that never are cost nothing.
  ValueId lookup(Scope& scope, const std::string& name) {
    const auto found = scope.values.find(name);
    if (found != scope.values.end()) return found->second;
    const auto weight = parameters_.by_placeholder.find(name);
    const bool at_root = &scope.graph.json() == &program_.json()["graph_module"]["graph"];
    if (!at_root || weight == parameters_.by_placeholder.end()) {
      scope.graph.fail(fmt::format("found no value of the name '{}' where it is used", name));
    }
    check_declared(scope, name, parameters_.weights[weight->second]);
    return weight_value(weight->second);
  }

  // Ops were exported for tensors as the graph declares them; what is stored must be those.
  static void check_declared(const Scope& scope, const std::string& name, const Weight& weight) {
    const Reader values = scope.graph["tensor_values"];
    if (!values.has(name)) values.fail(fmt::format("found no sizes of '{}'", name));
    const TensorMeta meta = tensor_meta_from(values[name]);
    const StoredTensor& stored = *weight.stored;
    const bool same = std::equal(
        meta.sizes.begin(), meta.sizes.end(), stored.shape.begin(), stored.shape.end(),
        [](const SymInt& size, std::int64_t number) { return size.expression.empty() && size.number == number; });
    if (same && meta.dtype == stored.dtype) return;
    values[name].fail(fmt::format("found '{}' stored as {} {}, wanted what the graph declares{}", weight.name,
                                  name_of(stored.dtype), to_text(stored.shape),
                                  meta.dtype == stored.dtype ? "" : fmt::format(", {}", name_of(meta.dtype))));
  }

  // The value that ops read: the weight, or the complex numbers that it holds as pairs.
  ValueId weight_value(std::size_t index) {
    if (read_values_[index] != kNoValue) return read_values_[index];
    const Weight& weight = parameters_.weights[index];
    const ValueId held = add_value({weight.name, weight.shape, weight.dtype});
    weight_values_[index] = held;
    ValueId& read = read_values_[index];
    read = weight.pairs ? add_value({weight.name + " (complex)", weight.stored->shape, weight.stored->dtype}) : held;
    if (weight.pairs) {
      graph().nodes.push_back(
          {"aten::view_as_complex", {held}, {read}, module_of(weight.name), where_, false, {"self"}});
    }
    return read;
  }

  // "block.0" of "block.0.running_mean".
  static std::string module_of(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? kModelPath : name.substr(0, dot);
  }

  void add_nodes(Scope& scope) {
    for (const Reader& json : scope.graph["nodes"].list()) {
      const NodeRecord record = node_from(json, program_.place());
      for (const ModuleEntry& module : record.modules) out_.classes.try_emplace(module.path, module.type);
      if (!record.function.empty() && std::count(out_.functions.begin(), out_.functions.end(), record.function) == 0) {
        out_.functions.push_back(record.function);
      }
      add_node(record, json.at(record.place), scope);
    }
  }

  void add_node(const NodeRecord& record, const Reader& json, Scope& scope) {
    where_ = record.where;
    const std::string op = op_from(record.target);
    const std::string number_op = number_op_from(record.target);
    if (is_assertion(op)) return;
    if (record.target == "_operator.pos") return add_alias(record, json, scope);
    if (number_op.empty() && op.empty()) return add_wrapped(record, json, scope);
    const std::string plain = without_out(op);
    Node node{!number_op.empty() ? number_op : plain.empty() ? op : plain,
              {},
              {},
              record.path,
              record.where,
              scope.no_gradient};
    const ValueLookup find = [&](const std::string& name) { return lookup(scope, name); };
    std::optional<Arg> out;
    for (const auto& [name, argument] : record.inputs) {
      Arg arg = arg_from(argument, find);
      if (!plain.empty() && name == "out") {
        out = std::move(arg);
        continue;
      }
      // Of an embedding: gradients are dense here, with the same values.
      if (name == "sparse" && std::holds_alternative<bool>(arg)) arg = false;
      node.args.push_back(std::move(arg));
      if (number_op.empty()) node.names.push_back(name);
    }
    for (const Tagged& output : record.outputs) add_output({output.tag, output.value.at(record.place)}, scope, node);
    if (number_op.empty() && op_traits(node.op) == nullptr) json.fail(why_not_admitted(op));
    if (node.no_gradient && gives_back_its_input(graph(), node)) node.no_gradient = false;
    if (copies_itself(node)) return name_anew(scope, node.outputs[0], std::get<ValueId>(node.args[1]));
    if (gives_back_all(scope, node)) return;
    graph().nodes.push_back(std::move(node));
    if (!plain.empty()) store_last_into(out, json);
  }

  // Outputs that are tensors of the list which the node is given become other names of these. Whether all are.
  [[nodiscard]] bool gives_back_all(Scope& scope, Node& node) {
    const std::vector<ValueId> same = tensors_given_back(graph(), node);
    for (std::size_t i = 0; i < same.size(); ++i) {
      if (same[i] != kNoValue) name_anew(scope, std::exchange(node.outputs[i], kNoValue), same[i]);
    }
    return !same.empty() &&
           std::all_of(node.outputs.begin(), node.outputs.end(), [](ValueId id) { return id == kNoValue; });
  }

  // Whether a tensor is copied into the memory in which it lies already, as exports do behind `buffer += 1`.
  [[nodiscard]] bool copies_itself(const Node& node) {
    if (node.op != "aten::copy_" || node.args.size() < 2 || node.outputs.size() != 1) return false;
    const auto *to = std::get_if<ValueId>(&node.args[0]), *from = std::get_if<ValueId>(&node.args[1]);
    if (to == nullptr || from == nullptr) return false;
    ValueId id = *from;
    for (auto call = graph().nodes.rbegin(); call != graph().nodes.rend() && id != *to; ++call) {
      const OpTraits* const traits = op_traits(call->op);
      if (call->outputs.size() != 1 || call->outputs[0] != id) continue;
      const auto* const written = call->args.empty() ? nullptr : std::get_if<ValueId>(&call->args[0]);
      if (traits == nullptr || !traits->in_place || written == nullptr) return false;
      id = *written;
    }
    return id == *to;
  }

  static void name_anew(Scope& scope, ValueId old, ValueId value) {
    for (auto& [name, id] : scope.values) {
      if (id == old) id = value;
    }
  }

  // `out=` is the op without it, and a copy of what it makes into the tensor that is given: nothing behind the importer
  // meets an op that writes anything but its first argument.
  void store_last_into(const std::optional<Arg>& out, const Reader& json) {
    const auto* target = out ? std::get_if<ValueId>(&*out) : nullptr;
    std::vector<ValueId>& outputs = graph().nodes.back().outputs;
    if (target == nullptr || outputs.size() != 1 || outputs[0] == kNoValue) {
      json.fail("wanted one tensor as out=, and one result");
    }
    Value made = graph().values[static_cast<std::size_t>(outputs[0])];
    if (made.shape != graph().values[static_cast<std::size_t>(*target)].shape) {
      json.fail(fmt::format("found a result {}, wanted one of out='s sizes", to_text(made.shape)));
    }
    const ValueId result = outputs[0];
    const ValueId value = add_value(std::move(made));
    Node& node = graph().nodes.back();
    node.outputs[0] = value;
    graph().nodes.push_back(
        {"aten::copy_", {*target, value}, {result}, node.path, node.where, node.no_gradient, {"self", "src"}});
  }

  void add_alias(const NodeRecord& record, const Reader& json, Scope& scope) {
    const std::vector<std::string> outputs = names_in(record.outputs);
    if (record.inputs.size() != 1 || outputs.size() != 1) json.fail("wanted one number, and one result");
    const std::vector<std::string> from = names_in(record.inputs[0].second);
    if (from.size() != 1 || from[0].empty()) json.fail("wanted a number of the graph");
    name_value(scope, outputs[0], lookup(scope, from[0]));
  }

  void add_output(const Tagged& output, Scope& scope, Node& node) {
    const std::string& tag = output.tag;
    const bool number = node.op.starts_with("number::");
    if (tag == "as_none") {
      node.outputs.push_back(kNoValue);
    } else if (tag == "as_tensor" || tag == "as_tensors") {
      for (const std::string& name : names_in(output))
        node.outputs.push_back(declare_tensor(scope, name, output.value));
    } else if (tag == "as_optional_tensor" || tag == "as_optional_tensors") {
      const std::vector<Tagged> items =
          tag == "as_optional_tensor" ? std::vector{tagged_from(output.value)} : tagged_list_from(output.value);
      for (const Tagged& item : items) {
        const bool none = item.tag == "as_none";
        node.outputs.push_back(none ? kNoValue : declare_tensor(scope, item.value["name"].text(), output.value));
      }
    } else if (number && (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool")) {
      node.outputs.push_back(declare_number(scope, output));
    } else if (tag.starts_with("as_sym_")) {
      output.value.fail("reads a number out of a tensor, on which the rest of the graph depends; keep it a tensor");
    } else {
      output.value.fail(fmt::format("found a result of kind '{}', which cannot be trained fused", tag));
    }
  }

  ValueId declare_tensor(Scope& scope, const std::string& name, const Reader& json) {
    const TensorMeta meta = tensor_meta_from(scope.graph["tensor_values"][name].at(json.place()));
    for (const SymInt& size : meta.sizes) {
      if (size.expression.empty() || data_dependent_symbol(size.expression).empty()) continue;
      json.fail(
          "the size of its result depends on the data, which differ between trials; where the mask is always the "
          "same, make it a buffer, else multiply by it");
    }
    const ValueId value =
        add_value({name, batch_.symbols.shape(meta.sizes, json), meta.dtype, false, order_in_memory(meta)});
    name_value(scope, name, value);
    return value;
  }

  ValueId declare_number(Scope& scope, const Tagged& output) {
    const DType dtype = output.tag == "as_sym_int"     ? DType::kInt64
                        : output.tag == "as_sym_float" ? DType::kFloat64
                                                       : DType::kBool;
    const std::string& name = output.value["as_name"].text();
    const ValueId value = add_value({name, {}, dtype, true});
    name_value(scope, name, value);
    return value;
  }

  void add_wrapped(const NodeRecord& record, const Reader& json, Scope& scope) {
    const std::string name = higher_order_from(record.target);
    const auto is_graph = [](const auto& input) { return input.second.tag == "as_graph"; };
    const auto body = std::find_if(record.inputs.begin(), record.inputs.end(), is_graph);
    const bool wrapper = std::find(kWrappers.begin(), kWrappers.end(), name) != kWrappers.end();
    if (!wrapper || body == record.inputs.end()) {
      json.fail(name.empty() ? "this op cannot be trained fused"
                             : fmt::format("'{}' is control flow, which cannot be trained fused; write a choice with "
                                           "torch.where, a loop of fixed length in Python, and export again",
                                           name));
    }
    Scope inner{body->second.value["graph"], {}, wrapped_no_gradient(name, record, json, scope)};
    std::vector<Tagged> given;
    // Operands have no names, settings do; a reused graph carries its own name before its operands.
    for (auto input = body + 1; input != record.inputs.end(); ++input) {
      if (input->first.empty() && input->second.tag != "as_string") given.push_back(input->second);
    }
    bind(names_in(tagged_list_from(inner.graph["inputs"])), inner, names_in(given), scope, json);
    add_nodes(inner);
    bind(names_in(record.outputs), scope, names_in(tagged_list_from(inner.graph["outputs"])), inner, json);
  }

  static bool wrapped_no_gradient(const std::string& name, const NodeRecord& record, const Reader& json,
                                  const Scope& scope) {
    if (name == "wrap_with_set_grad_enabled") {
      if (record.inputs[0].second.tag != "as_bool") json.fail("wanted true or false as its first argument");
      return !record.inputs[0].second.value.boolean();
    }
    constexpr std::size_t kEnabled = 2;
    if (name == "wrap_with_autocast") {
      const bool known = record.inputs.size() > kEnabled && record.inputs[kEnabled].second.tag == "as_bool";
      if (!known || record.inputs[kEnabled].second.value.boolean()) {
        json.fail("torch.autocast is on within the model: export it without, precision is chosen when it is trained");
      }
    }
    return scope.no_gradient;
  }

  // Gives values of one scope names in another.
  void bind(const std::vector<std::string>& names, Scope& to, const std::vector<std::string>& values, Scope& from,
            const Reader& json) {
    if (names.size() != values.size()) {
      json.fail(fmt::format("found {} values for {} names of a graph in the graph", values.size(), names.size()));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      if (values[i].empty()) json.fail(fmt::format("found a literal, wanted a value for '{}'", names[i]));
      name_value(to, names[i], lookup(from, values[i]));
    }
  }

  void add_outputs(Scope& root) {
    for (const OutputSpec& output : signature_.outputs) {
      const ValueId value = lookup(root, output.value);
      if (output.buffer.empty()) {
        Value& described = graph().values[static_cast<std::size_t>(value)];
        // A graph for one batch size has written the number where it meant the batch.
        Shape& shape = described.shape;
        if (batch_.fixed > 0 && !shape.empty() && shape[0] == batch_.fixed) shape[0] = kBatch;
        out_.outputs.push_back({output.leaf.name, described.shape, described.dtype, output.leaf.position});
        out_.output_values.push_back(value);
        continue;
      }
      // A functionalised export returns what buffers become.
      const auto buffer = parameters_.buffers.find(output.buffer);
      if (buffer == parameters_.buffers.end()) {
        root.graph.fail(fmt::format("found a new value for '{}', which is no buffer", output.buffer));
      }
      const ValueId target = weight_value(buffer->second);
      graph().nodes.push_back(
          {"aten::copy_", {target, value}, {kNoValue}, module_of(output.buffer), "", true, {"self", "src"}});
    }
    if (out_.outputs.empty()) root.graph.fail("found no output that is a tensor");
    graph().outputs = {out_.output_values[0]};
  }

  void add_weights() {
    for (std::size_t i = 0; i < parameters_.weights.size(); ++i) {
      if (weight_values_[i] == kNoValue) continue;
      graph().weights.push_back(parameters_.weights[i]);
      graph().weights.back().value = weight_values_[i];
    }
  }

  const Reader& program_;
  const Signature& signature_;
  const Parameters& parameters_;
  const Batch& batch_;
  std::vector<ValueId> weight_values_;  ///< By weight; kNoValue: nothing has read it yet.
  std::vector<ValueId> read_values_;    ///< By weight: the value that ops read in its place.
  std::string where_;                   ///< Source line of the node at hand.
  Translation out_;
};

}  // namespace

Translation translate(const Reader& program, const Signature& signature, const Parameters& parameters,
                      const Batch& batch) {
  return Translator(program, signature, parameters, batch).run();
}

}  // namespace hfta::fusion::pt2
