#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using fusion::Average;
using fusion::MetricInfo;
using fusion::MetricSpec;

std::vector<std::string> names_for(fusion::OutputKind kind) {
  std::vector<std::string> names;
  for (const MetricInfo& metric : fusion::metrics()) {
    if (metric.takes_kind(kind)) names.emplace_back(metric.name);
  }
  return names;
}

std::vector<MetricSpec> metrics_of(fusion::Loss loss) {
  const auto kind = fusion::info_of(loss).output;
  return kind ? fusion::default_metrics(*kind) : std::vector<MetricSpec>{};
}

const MetricInfo& metric_named(const Site& site, const Node& node, fusion::Loss loss) {
  const auto kind = fusion::info_of(loss).output;
  const std::string word = site.word(node);
  const std::vector<std::string> names = kind ? names_for(*kind) : std::vector<std::string>{};
  if (std::count(names.begin(), names.end(), word) > 0) return *fusion::find_metric(word);
  site.fail(node, fmt::format("found '{}', wanted a metric that goes with {}{}", excerpt(word), name_of(loss),
                              names.empty() ? ": it has none" : suggestion(word, names)));
}

void read_option(const Site& site, const Node& node, const fusion::MetricOption& option, MetricSpec& spec) {
  if (const auto* field = std::get_if<int MetricSpec::*>(&option.field)) {
    const Key key{
        .path = site.path, .type = KeyType::kInteger, .least = static_cast<double>(option.least), .most = 1e6};
    spec.** field = static_cast<int>(Site{site.file, site.path, key}.integer(node));
    return;
  }
  Key key{.path = site.path, .type = KeyType::kChoice};
  for (const Average average : option.averages) key.choices.emplace_back(name_of(average));
  const std::string word = Site{site.file, site.path, key}.word(node);
  const auto found = std::find(key.choices.begin(), key.choices.end(), word);
  spec.*std::get<Average MetricSpec::*>(option.field) =
      option.averages[static_cast<std::size_t>(found - key.choices.begin())];
}

// Reads a metric: accuracy, or {name: f1, average: micro}
MetricSpec read_metric(const Site& site, const Node& node, fusion::Loss loss) {
  const Node* name = node.kind == Node::Kind::kMap ? node.find("name") : &node;
  if (name == nullptr) site.fail(node, "found no name, wanted the name of a metric: {name: f1, average: micro}");
  const MetricInfo& info = metric_named(site, *name, loss);
  MetricSpec spec{info.name};
  if (node.kind != Node::Kind::kMap) return spec;
  for (const Entry& entry : node.entries) {
    if (entry.key == "name") continue;
    const auto option = std::find_if(info.options.begin(), info.options.end(),
                                     [&](const fusion::MetricOption& known) { return entry.key == known.name; });
    const Site place{site.file, join_path(site.path, entry.key), site.key};
    if (option == info.options.end())
      place.fail(entry.value, fmt::format("found an option that {} does not have", info.name));
    read_option(place, entry.value, *option, spec);
  }
  return spec;
}

void read_list(Reader& train, const Node& node, TaskSpec& task) {
  const Site site = train.site("metrics");
  static const Key one{.path = "train.metrics.*", .type = KeyType::kWord, .wanted = "a metric"};
  const bool list = node.kind == Node::Kind::kList;
  std::vector<MetricSpec>& metrics = task.recipe.metrics;
  for (std::size_t i = 0; i < (list ? node.items.size() : 1); ++i) {
    const Node& item = list ? node.items[i] : node;
    const Site place{site.file, list ? join_path(site.path, std::to_string(i)) : site.path, one};
    if (item.kind == Node::Kind::kScalar && trials::to_text(item.value) == "loss") continue;  // always taken
    MetricSpec spec = read_metric(place, item, task.recipe.loss);
    if (std::count(metrics.begin(), metrics.end(), spec) == 0) metrics.push_back(std::move(spec));
  }
}

bool is_name(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

// The outputs that formulas read, each once.
void add_terms(const Formula& formula, TaskSpec& task) {
  for (const Formula::Term& term : formula.terms()) {
    std::vector<std::string>& terms = task.recipe.terms;
    const bool given = !term.mean && (term.name == "loss" || term.name == "samples");
    if (!given && std::count(terms.begin(), terms.end(), term.name) == 0) terms.push_back(term.name);
  }
}

// Reads metrics that are formulas: {accuracy: "hits / tokens"}
void read_formulas(Reader& train, const Node& map, TaskSpec& task) {
  const Site site = train.site("metrics");
  if (task.recipe.loss != fusion::Loss::kModel) {
    site.fail(map, fmt::format("found formulas, which read outputs of a model that is its own loss, wanted a list of "
                               "metrics of {}",
                               fusion::name_of(task.recipe.loss)));
  }
  for (const Entry& entry : map.entries) {
    const Site place{site.file, join_path(site.path, entry.key), site.key};
    if (!is_name(entry.key) || entry.key == "loss") {
      place.fail(entry.value, "found this name of a metric, wanted letters, digits and _, and not 'loss'");
    }
    if (entry.value.kind != Node::Kind::kScalar)
      place.fail(entry.value, "found no formula, wanted one: \"hits / tokens\"");
    try {
      task.recipe.formulas.push_back({entry.key, Formula::parse(trials::to_text(entry.value.value))});
    } catch (const Error& error) {
      place.fail(entry.value, error.what());
    }
    add_terms(task.recipe.formulas.back().formula, task);
  }
}

}  // namespace

void read_metrics(Reader& train, TaskSpec& task) {
  const Node* node = train.find("metrics");
  if (node == nullptr || node->is_null()) {
    task.recipe.metrics = metrics_of(task.recipe.loss);
    std::vector<std::string> names;
    for (const MetricSpec& metric : task.recipe.metrics) names.push_back(metric.name);
    train.record("metrics", names);
    return;
  }
  train.record("metrics", to_json(*node));
  if (node->kind == Node::Kind::kMap) {
    read_formulas(train, *node, task);
  } else {
    read_list(train, *node, task);
  }
  if (task.recipe.loss != fusion::Loss::kModel) return;
  std::vector<std::string>& further = task.model_file->import.further;
  further.insert(further.end(), task.recipe.terms.begin(), task.recipe.terms.end());
}

}  // namespace hfta::engine::configuration
