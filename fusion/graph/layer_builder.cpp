#include "fusion/graph/layer_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/graph/init_rules.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::string> names_of(const std::vector<ArgRule>& rules) {
  std::vector<std::string> names;
  names.reserve(rules.size());
  for (const ArgRule& rule : rules) names.push_back(rule.name);
  return names;
}

// {reshape: [1, 8, 8]}, {adaptive_avg_pool2d: [4, 4]}, {layer_norm: [4, 8]}: where the only argument is a list, or the
// first a list of any length, whole numbers are its items.
std::vector<LayerArg> folded(const LayerKind& kind, const std::vector<LayerArg>& positional) {
  const bool takes_all = kind.args.size() == 1 || (!kind.args.empty() && kind.args[0].count == 0);
  if (!takes_all || kind.args[0].type != ArgType::kInts || positional.size() < 2) return positional;
  std::vector<std::int64_t> list;
  for (const LayerArg& arg : positional) {
    const auto integer = coerce(ArgRule{.name = ""}, arg);
    if (!integer) return positional;
    list.push_back(std::get<std::int64_t>(*integer));
  }
  return {list};
}

}  // namespace

LayerBuilder::LayerBuilder(Graph& graph, const LayerSpec& spec, const LayerKind& kind, std::size_t position,
                           ValueId input, const NamedOutputs& outputs, DType dtype)
    : graph_(graph),
      spec_(spec),
      kind_(kind),
      outputs_(outputs),
      label_(fmt::format("{}{}layers.{} ({})", spec.where, spec.where.empty() ? "" : ": ", position, kind.name)),
      path_(spec.name.empty() ? fmt::format("layers.{}", position) : spec.name),
      dtype_(dtype),
      current_(input) {
  bind();
}

void LayerBuilder::fail(const std::string& message) const { throw Error(ErrorKind::kConfig, label_ + ": " + message); }

void LayerBuilder::wrong_input(const std::string& wanted) const {
  fail("found input " + to_text(shape()) + ", wanted " + wanted);
}

void LayerBuilder::take(const ArgRule& rule, const LayerArg& arg) {
  const auto value = coerce(rule, arg);
  if (!value) fail(fmt::format("{}: found {}, wanted {}", rule.name, to_text(arg), wanted_text(rule)));
  if (rule.type == ArgType::kName) {
    const std::string& name = std::get<std::string>(*value);
    const auto found = outputs_.find(name);
    if (found == outputs_.end()) {
      std::vector<std::string> known;
      for (const auto& [output, id] : outputs_) known.push_back(output);
      fail(fmt::format("{}: found '{}', wanted the name of an earlier layer{}", rule.name, printable(name),
                       suggestion(name, known)));
    }
    joined_.emplace_back(name, found->second);
  }
  args_[rule.name] = *value;
}

void LayerBuilder::bind_positional() {
  const std::vector<LayerArg> positional = folded(kind_, spec_.positional);
  const std::vector<ArgRule>& rules = kind_.args;
  std::size_t next = 0;
  for (const LayerArg& arg : positional) {
    // A name may be followed by further names.
    const bool further = next == 1 && rules[0].type == ArgType::kName && std::holds_alternative<std::string>(arg);
    if (further) next = 0;
    if (next >= rules.size()) {
      const std::string most =
          rules.empty() ? "none" : fmt::format("at most {}: {}", rules.size(), join(names_of(rules)));
      fail(fmt::format("arguments: found {}, wanted {}", positional.size(), most));
    }
    take(rules[next++], arg);
  }
}

void LayerBuilder::bind_named() {
  const std::vector<std::string> names = names_of(kind_.args);
  for (const auto& [name, arg] : spec_.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      fail(fmt::format("found argument '{}', wanted {}{}", printable(name),
                       names.empty() ? "none" : "one of this kind's", suggestion(name, names)));
    }
    if (args_.contains(name)) fail(name + ": found it twice, wanted it once");
    take(kind_.args[static_cast<std::size_t>(found - names.begin())], arg);
  }
}

void LayerBuilder::bind() {
  bind_positional();
  bind_named();
  for (const ArgRule& rule : kind_.args) {
    if (args_.contains(rule.name)) continue;
    if (rule.fallback) {
      args_[rule.name] = coerce(rule, *rule.fallback).value();
    } else if (rule.required) {
      fail(fmt::format("{}: found nothing, wanted {}", rule.name, wanted_text(rule)));
    }
  }
}

std::int64_t LayerBuilder::integer(const std::string& arg) const { return std::get<std::int64_t>(args_.at(arg)); }
std::vector<std::int64_t> LayerBuilder::integers(const std::string& arg) const {
  return std::get<std::vector<std::int64_t>>(args_.at(arg));
}
double LayerBuilder::real(const std::string& arg) const { return std::get<double>(args_.at(arg)); }
bool LayerBuilder::flag(const std::string& arg) const { return std::get<bool>(args_.at(arg)); }
std::optional<std::string> LayerBuilder::word(const std::string& arg) const {
  const auto* word = std::get_if<std::string>(&args_.at(arg));
  return word != nullptr ? std::optional(*word) : std::nullopt;
}

std::size_t LayerBuilder::dimension(const std::string& arg) const {
  const auto rank = static_cast<std::int64_t>(shape().size());
  const std::int64_t given = integer(arg);
  const std::int64_t dim = given < 0 ? given + rank : given;
  if (dim < 1 || dim >= rank) {
    fail(fmt::format("{}: found {}, wanted a dimension of input {} other than the batch's: 1 to {}", arg, given,
                     to_text(shape()), rank - 1));
  }
  return static_cast<std::size_t>(dim);
}

const Shape& LayerBuilder::shape_of(ValueId value) const {
  return graph_.values[static_cast<std::size_t>(value)].shape;
}

ValueId LayerBuilder::new_value(const std::string& name, const Shape& shape, DType dtype) {
  if (!element_count(shape)) {
    fail(fmt::format("found {} of shape {}, wanted at most {} elements", name, to_text(shape), kMostElements));
  }
  graph_.values.push_back({name, shape, dtype, false});
  return static_cast<ValueId>(graph_.values.size()) - 1;
}

ValueId LayerBuilder::weight(const std::string& name, const Shape& shape, Init init, bool trained) {
  const std::string full = path_ + "." + name;
  const ValueId value = new_value(full, shape, dtype_);
  graph_.weights.push_back({full, shape, dtype_, init, trained, value, nullptr, {}});
  return value;
}

ValueId LayerBuilder::parameter(const char* op, const std::string& name, const Shape& shape, const Shape& weight_shape,
                                bool trained) {
  const std::optional<Init> init = init_of(
      *op_traits(op), name, shape, [&](const std::string& own) { return own == "weight" ? weight_shape : Shape{}; });
  return weight(name, shape, init.value(), trained);
}

HyperRef LayerBuilder::hyper(const std::string& name, double value) {
  graph_.hypers.push_back({path_ + "." + name, value});
  return {static_cast<int>(graph_.hypers.size()) - 1};
}

void LayerBuilder::call(const std::string& op, std::vector<Arg> args, const Shape& shape, const std::string& suffix,
                        bool indices) {
  args.insert(args.begin(), Arg(current_));
  call_with(op, std::move(args), shape, suffix, indices);
}

void LayerBuilder::call_with(const std::string& op, std::vector<Arg> args, const Shape& shape,
                             const std::string& suffix, bool indices) {
  const std::string path = path_ + suffix;
  Node node{op, std::move(args), {new_value(path, shape, dtype_)}, path, spec_.where};
  current_ = node.outputs[0];
  if (indices) node.outputs.push_back(new_value(path + ".indices", shape, DType::kInt64));
  graph_.nodes.push_back(std::move(node));
}

}  // namespace hfta::fusion
