// parameters.*.when and .otherwise, and constraints: how parameters depend on each other.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/study.hpp"
#include "search/completion.hpp"
#include "search/space.hpp"
#include "trials/json.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;
using trials::Condition;
using trials::Parameter;
using trials::ParamValue;

std::vector<std::string> names_of(const trials::Space& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space) names.push_back(parameter.name);
  return names;
}

const Parameter* find_parameter(const trials::Space& space, const std::string& name) {
  const auto found = std::find_if(space.begin(), space.end(), [&](const Parameter& p) { return p.name == name; });
  return found == space.end() ? nullptr : &*found;
}

Condition read_condition(const Site& site, const Entry& entry, const trials::Space& space) {
  const Parameter* other = find_parameter(space, entry.key);
  if (other == nullptr) {
    site.fail(entry.value, fmt::format("found '{}', wanted the name of a parameter{}", excerpt(entry.key),
                                       suggestion(entry.key, names_of(space))));
  }
  Condition condition{entry.key, {}};
  const std::vector<Node> alone = {entry.value};
  const std::vector<Node>& values = entry.value.kind == Node::Kind::kList ? entry.value.items : alone;
  for (const Node& node : values) {
    const bool plain = node.kind == Node::Kind::kScalar && !node.out_of_range;
    const auto value = plain ? search::admit(other->distribution, node.value) : std::nullopt;
    if (!value) {
      site.fail(node,
                fmt::format("found {}, wanted a value that {} can have", found_text(node), printable(other->name)));
    }
    condition.values.push_back(*value);
  }
  if (condition.values.empty()) site.fail(entry.value, "found an empty list, wanted a value, or a list of them");
  return condition;
}

void read_when(const std::string& file, const Entry& entry, json& record, StudyConfig& config) {
  const Node* when = entry.value.find("when");
  const Node* otherwise = entry.value.find("otherwise");
  const std::string path = join_path("parameters", entry.key);
  const Site when_site{file, join_path(path, "when"), *find_key("parameters.*.when")};
  const Site otherwise_site{file, join_path(path, "otherwise"), *find_key("parameters.*.otherwise")};
  if (otherwise != nullptr) {
    if (otherwise->kind != Node::Kind::kScalar || otherwise->out_of_range) otherwise_site.mismatch(*otherwise);
    if (when == nullptr) otherwise_site.fail(*otherwise, "found it without `when`, wanted both or neither");
    config.otherwise[entry.key] = otherwise->value;
    record["otherwise"] = trials::value_json(otherwise->value);
  }
  if (when == nullptr) return;
  if (when->kind != Node::Kind::kMap || when->entries.empty()) when_site.mismatch(*when);
  const auto own =
      std::find_if(config.space.begin(), config.space.end(), [&](const Parameter& p) { return p.name == entry.key; });
  for (const Entry& condition : when->entries) {
    own->when.push_back(read_condition(when_site, condition, config.space));
    for (const ParamValue& value : own->when.back().values)
      record["when"][condition.key].push_back(trials::value_json(value));
  }
}

// Only numbers can be computed with.
bool is_numeric(const trials::Distribution& distribution) {
  return std::all_of(distribution.values.begin(), distribution.values.end(), [](const ParamValue& value) {
    return !std::holds_alternative<std::string>(value) && !std::holds_alternative<std::monostate>(value);
  });
}

search::Constraint read_constraint(const Site& site, const Node& node, const trials::Space& space) {
  const auto* text = std::get_if<std::string>(&node.value);
  if (node.kind != Node::Kind::kScalar || text == nullptr) site.mismatch(node);
  try {
    search::Constraint constraint = search::Constraint::parse(*text);
    for (const std::string& name : constraint.names()) {
      const Parameter* parameter = find_parameter(space, name);
      if (parameter == nullptr) {
        throw Error(ErrorKind::kConfig, fmt::format("found '{}', wanted the name of a parameter{}", excerpt(name),
                                                    suggestion(name, names_of(space))));
      }
      if (is_numeric(parameter->distribution)) continue;
      throw Error(ErrorKind::kConfig, fmt::format("found {}, which has values that are no numbers", printable(name)));
    }
    if (constraint.names().empty()) throw Error(ErrorKind::kConfig, "found no parameter in it, wanted one or more");
    return constraint;
  } catch (const Error& error) {
    site.fail(node, fmt::format("'{}': {}", excerpt(*text), error.what()));
  }
}

void read_constraints(Reader& root, StudyConfig& config) {
  const Node* list = root.find("constraints");
  if (list == nullptr || list->is_null()) return;
  const Site site = root.site("constraints");
  if (list->kind != Node::Kind::kList) site.mismatch(*list);
  json texts = json::array();
  for (const Node& node : list->items) {
    config.constraints.push_back(read_constraint(site, node, config.space));
    texts.push_back(config.constraints.back().text());
  }
  if (!texts.empty()) root.record("constraints", std::move(texts));
}

}  // namespace

void read_dependences(Reader& root, const std::string& file, json& record, StudyConfig& config) {
  const Node& map = *root.find("parameters");
  for (const Entry& entry : map.entries) read_when(file, entry, record["parameters"][entry.key], config);
  if (const std::vector<std::string> circle = search::in_circles(config.space); !circle.empty()) {
    fail_at(file, *map.find(circle.front()), join_path(join_path("parameters", circle.front()), "when"),
            fmt::format("found conditions in a circle, of {}; wanted none that depends on itself",
                        printable(join(circle))));
  }
  read_constraints(root, config);
}

void check_dependences(const Reader& root, const StudyConfig& config) {
  const search::Method& method = search::method(config.method);
  const bool depends = trials::is_conditional(config.space) || !config.constraints.empty();
  if (!depends || !method.copies_trials) return;
  root.fail("method",
            fmt::format("found {}, which changes parameters of trials, beside `when` or `constraints`; wanted "
                        "another method",
                        config.method));
}

}  // namespace hfta::engine::configuration
