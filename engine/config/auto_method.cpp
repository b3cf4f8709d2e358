// method: auto
#include "engine/config/auto_method.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/keys.hpp"
#include "engine/config/reader.hpp"
#include "engine/config/study.hpp"
#include "engine/config/yaml.hpp"
#include "search/auto_method.hpp"

namespace hfta::engine {
namespace configuration {
namespace {

using nlohmann::json;

bool is_open(const Node* method) {
  if (method == nullptr || method->is_null()) return true;
  const auto* word = method->kind == Node::Kind::kScalar ? std::get_if<std::string>(&method->value) : nullptr;
  return word != nullptr && *word == "auto";
}

int epochs_of(const Node& root, const std::string& file) {
  const Node* train = root.find("train");
  const Node* epochs = train != nullptr ? train->find("epochs") : nullptr;
  if (epochs == nullptr) return 1;  // an error that reading the task reports
  return static_cast<int>(Site{file, "train.epochs", *find_key("train.epochs")}.integer(*epochs));
}

template <typename Number>
void set(std::optional<Number>& to, std::optional<std::int64_t> found) {
  if (found) to = static_cast<Number>(*found);
}

AutoChoice choose(const Node& root, const std::string& file) {
  json unused = json::object();
  Reader reader(file, root, "", "", unused);
  StudyConfig config;
  config.space = read_space(reader, file, unused);
  read_dependences(reader, file, unused, config);
  search::StudyOutline study{config.space, config.constraints};
  study.epochs = epochs_of(root, file);
  Reader budget = reader.section("budget");
  set(study.configurations, budget.optional_integer("trials"));
  set(study.configurations, reader.optional_integer("run_cap"));
  study.trial_epochs = budget.optional_integer("epochs");
  study.repetitions = static_cast<int>(reader.integer("repeat") * reader.section("folds").integer("count"));
  set(study.width, reader.section("array").integer_or_auto("width"));
  if (const Node* metric = root.find("metric")) study.objectives = objective_nodes(*metric).size();
  study.stops = reader.has("early_stopping") || reader.has("early_terminate");

  const search::MethodChoice choice = search::choose_method(study);
  AutoChoice written{{{"method", choice.method}}, choice.reason};
  if (choice.stopping) {
    std::vector<std::string> words{"name: " + choice.stopping->rule};
    for (const auto& [field, value] : fields_read(*choice.stopping))
      words.push_back(fmt::format("{}: {}", field, value));
    written.keys.push_back({"early_stopping", "{" + join(words) + "}"});
  }
  return written;
}

void put(Node& root, const Override& key) {
  Node value = parse_yaml(key.value, "auto");
  if (Node* there = root.find(key.key_path)) {
    value.line = there->line;
    *there = std::move(value);
  } else {
    root.entries.push_back({key.key_path, value.line, std::move(value)});
  }
}

}  // namespace

std::optional<AutoChoice> settle_method(Node& root, const std::string& file, const std::optional<AutoChoice>& begun) {
  if (!is_open(root.find("method"))) return std::nullopt;
  AutoChoice choice = begun ? *begun : choose(root, file);
  for (const Override& key : choice.keys) put(root, key);
  if (is_open(root.find("method"))) {
    throw Error(ErrorKind::kStorage, "the stored choice of `method: auto`: found no method in it");
  }
  return choice;
}

}  // namespace configuration

std::string AutoChoice::text() const {
  std::vector<std::string> words;
  for (const Override& key : keys) words.push_back(fmt::format("{}: {}", key.key_path, key.value));
  return fmt::format("auto chose {}, because {}", join(words, " and "), reason);
}

}  // namespace hfta::engine
