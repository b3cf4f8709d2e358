#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

const fusion::LossInfo& loss_named(std::string_view name) {
  const auto all = fusion::losses();
  return *std::find_if(all.begin(), all.end(), [&](const fusion::LossInfo& loss) { return loss.name == name; });
}

void read_output(Reader& loss, TaskSpec& task) {
  const Node* node = loss.find("output");
  if (!task.model_file) {
    if (node != nullptr) loss.fail("output", "found it beside model.layers, whose one output the loss takes");
    return;
  }
  loss.record("output", node != nullptr ? to_json(*node) : nlohmann::json());
  if (node == nullptr || node->is_null()) return;
  const Site site = loss.site("output");
  if (std::holds_alternative<std::string>(node->value) && node->kind == Node::Kind::kScalar) {
    task.model_file->import.output = site.word(*node);
  } else {
    task.model_file->import.output = site.integer(*node);
  }
}

std::vector<double> read_numbers(const Site& site, const Node& node) {
  if (node.is_null()) return {};
  if (node.kind != Node::Kind::kList || node.items.empty()) site.mismatch(node);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    numbers.push_back(Site{site.file, join_path(site.path, std::to_string(i)), site.key}.number(node.items[i]));
  }
  return numbers;
}

// Reads pos_weight: one number stands for a list of one. A weight of 1 is the same as none.
std::vector<double> read_pos_weight(const Site& site, const Node& node) {
  const bool number = node.kind == Node::Kind::kScalar && !node.is_null();
  std::vector<double> weights = number ? std::vector{site.number(node)} : read_numbers(site, node);
  if (weights == std::vector<double>{1}) weights.clear();
  return weights;
}

// Records a value only if it is not the default, so that studies from before there was the key compare as equal.
template <typename T>
void record_change(Reader& loss, const char* key, const T& value, const T& fallback) {
  if (value != fallback || !loss.find(key)->from.empty()) loss.record(key, to_json(*loss.find(key)));
}

void read_options(Reader& loss, TaskSpec& task) {
  fusion::LossOptions& options = task.recipe.loss_options;
  const auto& known = fusion::info_of(task.recipe.loss).options;
  const auto read = [&](const char* key, auto& field, auto reader) {
    if (std::find(known.begin(), known.end(), key) == known.end() || !loss.has(key)) return;
    const auto before = field;
    field = static_cast<std::decay_t<decltype(field)>>(reader(loss.site(key), *loss.find(key)));
    record_change(loss, key, field, before);
  };
  const auto integer = [](const Site& site, const Node& node) { return site.integer(node); };
  const auto flag = [](const Site& site, const Node& node) { return site.flag(node); };
  read("ignore_index", options.ignore_index, integer);
  read("class_dim", options.class_dim, integer);
  read("log_input", options.log_input, flag);
  read("log_target", options.log_target, flag);
  if (options.class_dim == 0) loss.fail("class_dim", "found 0, wanted 1 or -1");
  read("class_weight", options.class_weight, read_numbers);
  read("pos_weight", options.pos_weight, read_pos_weight);
}

void read_own(Reader& loss, TaskSpec& task) {
  if (!task.model_file) loss.fail("name", "found a loss of the model beside model.layers, wanted a model.file");
  if (!loss.has("output")) loss.fail("output", "found nothing, wanted the name of the output that is the loss");
  task.model_file->import.own_loss = true;
  if (const auto weight = loss.optional_word("weight")) {
    task.recipe.loss_options.weighted = true;
    task.model_file->import.further.push_back(*weight);
  }
}

bool is_loss_of_model(const Node* loss) {
  if (loss == nullptr || loss->kind != Node::Kind::kMap) return false;
  const Node* name = loss->find("name");
  if (name == nullptr) return loss->find("output") != nullptr;
  return trials::to_text(name->value) == fusion::name_of(fusion::Loss::kModel);
}

}  // namespace

bool has_loss_of_model(const Reader& train) { return train.has("phases") || is_loss_of_model(train.find("loss")); }

void read_loss(Reader& train, const trials::Space& space, TaskSpec& task) {
  Reader loss = train.section("loss");
  const bool own = is_loss_of_model(train.find("loss"));
  const std::string name = own ? fusion::name_of(fusion::Loss::kModel) : loss.word("name");
  if (own) loss.record("name", name);
  std::vector<std::string> possible = possible_words(loss.find("name"), space);
  possible.push_back(name);
  loss.restrict_to(name, possible);
  const fusion::LossInfo& info = loss_named(name);
  task.recipe.loss = info.kind;
  for (const fusion::LossNumber& number : info.numbers) task.hyper.loss.push_back(loss.number(number.name));
  read_options(loss, task);
  if (own) read_own(loss, task);
  read_output(loss, task);
}

}  // namespace hfta::engine::configuration
