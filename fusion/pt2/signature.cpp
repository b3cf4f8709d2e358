#include "fusion/pt2/signature.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace hfta::fusion::pt2 {
namespace {

bool is_literal(const std::string& tag) {
  return tag == "as_none" || tag == "as_int" || tag == "as_float" || tag == "as_bool" || tag == "as_string";
}

std::optional<InputSpec> user_input(const Tagged& arg) {
  if (is_literal(arg.tag)) return std::nullopt;
  if (arg.tag != "as_tensor") {
    arg.value.fail(
        fmt::format("found an input of kind '{}', wanted tensors: export the model with its numbers fixed", arg.tag));
  }
  const std::string& name = arg.value["name"].text();
  return InputSpec{InputSpec::Kind::kUser, name, name};
}

std::optional<InputSpec> input_from(const Reader& json) {
  const Tagged spec = tagged_from(json);
  const Reader& value = spec.value;
  if (spec.tag == "user_input") return user_input(tagged_from(value["arg"]));
  if (spec.tag == "constant_input") return std::nullopt;
  const auto named = [&](InputSpec::Kind kind, const char* target) {
    return InputSpec{kind, value["arg"]["name"].text(), value[target].text()};
  };
  if (spec.tag == "parameter") return named(InputSpec::Kind::kParameter, "parameter_name");
  if (spec.tag == "tensor_constant") return named(InputSpec::Kind::kConstant, "tensor_constant_name");
  if (spec.tag != "buffer") {
    json.fail(fmt::format("found an input of kind '{}', wanted parameters, buffers, constants and tensors", spec.tag));
  }
  InputSpec buffer = named(InputSpec::Kind::kBuffer, "buffer_name");
  buffer.persistent = value["persistent"].boolean();
  return buffer;
}

// Every output of the user's is the next of `leaves`, also one that is no tensor.
class Outputs {
 public:
  explicit Outputs(std::vector<Leaf> leaves) : leaves_(std::move(leaves)) {}

  void add(const Reader& json) {
    const Tagged spec = tagged_from(json);
    if (spec.tag == "user_output") {
      add_user(tagged_from(spec.value["arg"]));
    } else if (spec.tag == "buffer_mutation") {
      all_.push_back(OutputSpec{spec.value["arg"]["name"].text(), Leaf{"", 0}, spec.value["buffer_name"].text()});
    } else if (spec.tag == "user_input_mutation") {
      json.fail(fmt::format("the model writes into its input '{}': clone it there, and export again",
                            spec.value["user_input_name"].text()));
    } else {
      json.fail(fmt::format("found an output of kind '{}', wanted the outputs of a forward pass", spec.tag));
    }
  }
  std::vector<OutputSpec> take() { return std::move(all_); }

 private:
  void add_user(const Tagged& arg) {
    Leaf leaf = seen_ < leaves_.size() ? leaves_[seen_] : Leaf{std::to_string(seen_), seen_};
    ++seen_;
    if (arg.tag == "as_tensor") all_.push_back({arg.value["name"].text(), std::move(leaf), ""});
  }

  std::vector<Leaf> leaves_;
  std::vector<OutputSpec> all_;
  std::size_t seen_ = 0;
};

std::vector<Leaf> output_leaves(const Reader& graph_module) {
  if (!graph_module.has("module_call_graph")) return {};
  const std::vector<Reader> calls = graph_module["module_call_graph"].list();
  if (calls.empty() || !calls[0].has("signature") || !calls[0]["signature"].has("out_spec")) return {};
  const Reader spec = calls[0]["signature"]["out_spec"];
  const char* const kFields = "treespec_namedtuple_fields";
  const Json fields = graph_module.has(kFields) ? graph_module[kFields].json() : Json();
  return leaves_of(spec.text(), fields, spec.place());
}

}  // namespace

Signature signature_from(const Reader& program) {
  const Reader graph_module = program["graph_module"];
  Signature out;
  for (const Reader& spec : graph_module["signature"]["input_specs"].list()) {
    if (std::optional<InputSpec> input = input_from(spec.at(program.place()))) out.inputs.push_back(std::move(*input));
  }
  Outputs outputs(output_leaves(graph_module));
  for (const Reader& spec : graph_module["signature"]["output_specs"].list()) {
    outputs.add(spec.at(program.place()));
  }
  out.outputs = outputs.take();
  if (graph_module.has("module_call_graph")) {
    for (const Reader& call : graph_module["module_call_graph"].list()) out.modules.push_back(call["fqn"].text());
  }
  return out;
}

}  // namespace hfta::fusion::pt2
