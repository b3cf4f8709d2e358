#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "base/error.hpp"
#include "engine/config/study.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;
using search::Stopping;
using search::StoppingField;
using search::StoppingOptions;

// Reads a field's value from a config's section, by the field's type.
struct ReadField {
  Reader& section;
  const StoppingField& field;
  void operator()(int& value) const { value = static_cast<int>(section.integer(field.name)); }
  void operator()(double& value) const {
    const bool in_words = field.fallback != nullptr && *field.fallback != '\0';
    const auto found = in_words ? section.optional_number(field.name) : std::optional(section.number(field.name));
    if (found) value = *found;
  }
  void operator()(search::AshaMode& value) const {
    const std::string word = section.word(field.name);
    value = static_cast<search::AshaMode>(std::find(field.choices.begin(), field.choices.end(), word) -
                                          field.choices.begin());
  }
  void operator()(std::optional<int>& value) const {  // a config has 0 where it is unset
    if (const auto found = section.integer(field.name); found > 0) value = static_cast<int>(found);
  }
  void operator()(std::optional<double>& value) const { value = section.number(field.name); }
};

void read_field(Reader& section, const StoppingField& field, StoppingOptions& options) {
  const auto read = [&](const auto member) {  // by a copy: GCC 12 takes a write through the member for one beyond it
    auto value = options.*member;
    ReadField{section, field}(value);
    options.*member = value;
  };
  std::visit(read, field.field);
}

// Whether a rule is the one of a study without early stopping.
bool stops_nothing(const search::StoppingRule& rule) { return &rule == &search::stopping_rules().front(); }
bool stops_nothing(const Stopping& stopping) { return stops_nothing(search::stopping_rule(stopping.rule)); }

// Checks the range of a rule that reads one.
void check_range(const Reader& section, const StoppingOptions& options) {
  if (!(options.lower < options.upper)) {
    section.fail("lower", fmt::format("found {}, wanted a number below upper = {}", options.lower, options.upper));
  }
  if (!section.has("lower") && !section.has("upper")) {
    section.fail("", "found neither lower nor upper, wanted one of them");
  }
}

Stopping read_rule(Reader section, const Reader& root, const std::string& file, const StudyConfig& config) {
  Stopping stopping;
  stopping.rule = section.word("name");
  section.restrict_to(stopping.rule, {stopping.rule});
  const search::StoppingRule& rule = search::stopping_rule(stopping.rule);
  if (!stops_nothing(rule) && rule.judge == nullptr && search::method(config.method).scheduler != nullptr) {
    section.fail("name", fmt::format("found {} beside method: {}, which stops trials itself; wanted one of them",
                                     stopping.rule, config.method));
  }
  for (const StoppingField& field : search::stopping_fields()) {
    if (reads(rule, field.name)) read_field(section, field, stopping.options);
  }
  const Node* train = root.find("train");
  const Node* epochs = train != nullptr ? train->find("epochs") : nullptr;
  if (stops_nothing(rule) || epochs == nullptr) return stopping;
  const auto all = Site{file, "train.epochs", *find_key("train.epochs")}.integer(*epochs);
  if (stopping.options.min_epochs > all) {
    section.fail("min_epochs",
                 fmt::format("found {}, wanted at most train.epochs = {}", stopping.options.min_epochs, all));
  }
  if (reads(rule, "lower") && reads(rule, "upper")) check_range(section, stopping.options);
  return stopping;
}

// Reads W&B's early_terminate: bands at min_iter, min_iter * eta, ..., or at max_iter / eta^1 ... max_iter / eta^s.
std::optional<Stopping> read_early_terminate(Reader& root, const StudyConfig& config) {
  if (!root.has("early_terminate")) return std::nullopt;
  Reader section = root.section("early_terminate");
  (void)section.word("type");
  (void)section.flag("strict");
  Stopping stopping{"bands", {}};
  stopping.options.eta = static_cast<int>(section.integer("eta"));
  const auto from = section.optional_integer("min_iter"), most = section.optional_integer("max_iter"),
             count = section.optional_integer("s");
  if (from.has_value() == most.has_value()) section.fail("", "found min_iter and max_iter both or neither, wanted one");
  if (most.has_value() != count.has_value()) {
    section.fail(count ? "s" : "max_iter", "found max_iter without s, or s without max_iter, wanted both");
  }
  if (from) stopping.options.min_epochs = static_cast<int>(*from);
  if (most) stopping.options.max_iter = static_cast<int>(*most);
  if (count) stopping.options.s = static_cast<int>(*count);
  if (search::method(config.method).scheduler != nullptr) {
    section.fail(
        "", fmt::format("found it beside method: {}, which stops trials itself; wanted one of them", config.method));
  }
  return stopping;
}

}  // namespace

void read_early_stopping(Reader& root, const std::string& file, StudyConfig& config) {
  const Node* node = root.find("early_stopping");
  if (node == nullptr || node->kind != Node::Kind::kList) {
    Stopping only = read_rule(root.section("early_stopping"), root, file, config);
    if (!stops_nothing(only)) config.early_stopping.push_back(std::move(only));
  } else {
    const Site site = root.site("early_stopping");
    json& records = root.record("early_stopping", json::array());
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      json record;
      Reader section(file, node->items[i], join_path(site.path, std::to_string(i)), "early_stopping", record);
      Stopping one = read_rule(section, root, file, config);
      if (stops_nothing(one)) continue;
      config.early_stopping.push_back(std::move(one));
      records.push_back(std::move(record));
    }
  }
  if (auto one = read_early_terminate(root, config)) config.early_stopping.push_back(std::move(*one));
}

}  // namespace hfta::engine::configuration
