#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using fusion::Metric;
using fusion::Targets;

std::vector<Metric> metrics_of(fusion::Loss loss) {
  const Targets targets = fusion::info_of(loss).targets;
  if (targets == Targets::kClasses || targets == Targets::kProbabilities) return {Metric::kAccuracy};
  if (targets == Targets::kNone) return {};
  return {Metric::kMse, Metric::kMae, Metric::kR2};
}

void read_list(Reader& train, const Node& node, TaskSpec& task) {
  const std::vector<Metric> known = metrics_of(task.recipe.loss);
  std::vector<std::string> names;
  for (const Metric metric : known) names.emplace_back(fusion::name_of(metric));
  const Site site = train.site("metrics");
  std::vector<Metric>& metrics = task.recipe.metrics;
  for (const std::string& word : site.words(node)) {
    if (word == fusion::name_of(Metric::kLoss)) continue;  // always taken
    if (std::count(names.begin(), names.end(), word) == 0) {
      site.fail(node, fmt::format("found '{}', wanted a metric that goes with {}{}", printable(word),
                                  fusion::name_of(task.recipe.loss), suggestion(word, names)));
    }
    const Metric metric = known[static_cast<std::size_t>(std::find(names.begin(), names.end(), word) - names.begin())];
    if (std::count(metrics.begin(), metrics.end(), metric) == 0) metrics.push_back(metric);
  }
}

bool is_name(const std::string& text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
                              std::string::npos;
}

// The outputs that formulas read, each once.
void add_terms(const fusion::Formula& formula, TaskSpec& task) {
  for (const fusion::Formula::Term& term : formula.terms()) {
    std::vector<std::string>& terms = task.recipe.terms;
    const bool given = !term.mean && (term.name == "loss" || term.name == "samples");
    if (!given && std::count(terms.begin(), terms.end(), term.name) == 0) terms.push_back(term.name);
  }
}

// {accuracy: "hits / tokens"}
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
    if (entry.value.kind != Node::Kind::kScalar) place.fail(entry.value, "found no formula, wanted one: \"hits / tokens\"");
    try {
      task.recipe.formulas.push_back({entry.key, fusion::Formula::parse(trials::to_text(entry.value.value))});
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
    for (const Metric metric : task.recipe.metrics) names.emplace_back(fusion::name_of(metric));
    train.record("metrics", names);
    return;
  }
  train.record("metrics", to_json(*node));
  if (node->kind == Node::Kind::kMap) {
    read_formulas(train, *node, task);
  } else if (node->kind != Node::Kind::kList || !node->items.empty()) {
    read_list(train, *node, task);
  }
  if (task.recipe.loss != fusion::Loss::kModel) return;
  std::vector<std::string>& further = task.model_file->import.further;
  further.insert(further.end(), task.recipe.terms.begin(), task.recipe.terms.end());
}

}  // namespace hfta::engine::configuration
