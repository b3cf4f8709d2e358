// adapters: {lora: auto}
#include "engine/config/auto_adapters.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/yaml.hpp"
#include "search/methods.hpp"

namespace hfta::engine::configuration {
namespace {

/// A parameter of the ready space, as a config would write it, and the key of the adapters that takes it.
struct Prior {
  const char* parameter;
  const char* key;
  const char* distribution;
};

// Hu et al. 2021 (arXiv:2106.09685, section 7.2): a small rank is enough. Dettmers et al. 2023 (arXiv:2305.14314,
// section 4 and appendix A.2): all linear layers have to be adapted, the rank hardly matters, dropout of 0.05 to 0.1
// helps small models. Biderman et al. 2024 (arXiv:2405.09673, section 6): alpha of twice the rank. With `scale: rslora`
// a rank does not change what alpha is best (arXiv:2312.03732).
constexpr std::array<Prior, 3> kPriors = {{{"lora_rank", "rank", "{values: [2, 4, 8, 16]}"},
                                           {"lora_alpha", "alpha", "{values: [4, 8, 16, 32]}"},
                                           {"lora_dropout", "dropout", "{values: [0.0, 0.05, 0.1]}"}}};
// Biderman et al. 2024, section 6 and figure 6: the best rates of LoRA lie between 1e-5 and 5e-4 for models of billions
// of parameters, ten times those of full fine-tuning; Hu et al. 2021, tables 9 to 11: 2e-4 to 2e-3 for smaller ones.
constexpr const char* kRate = "lora_lr";
constexpr const char* kRates = "{distribution: log_uniform_values, min: 0.00005, max: 0.005}";

Node parsed(const char* text, int line) {
  Node node = parse_yaml(text, "the ready space");
  node.line = line;
  for (Entry& entry : node.entries) entry.line = entry.value.line = line;
  return node;
}

Node map_at(int line) {
  Node map;
  map.kind = Node::Kind::kMap;
  map.line = line;
  return map;
}

Node& child(Node& map, const char* key, int line) {
  if (Node* there = map.find(key)) {
    if (there->is_null()) *there = map_at(line);
    return *there;
  }
  map.entries.push_back({key, line, map_at(line)});
  return map.entries.back().value;
}

void put(Node& map, const std::string& key, Node value) {
  if (map.kind == Node::Kind::kMap && map.find(key) == nullptr)
    map.entries.push_back({key, value.line, std::move(value)});
}

Node reference(const std::string& parameter, int line) { return scalar_node("${" + parameter + "}", false, line); }

// Adds a learning rate to the space, where the config has the optimizer and leaves its rate open.
void search_rate(Node& root, Node& parameters, int line) {
  Node* train = root.find("train");
  Node* optimizer = train == nullptr ? nullptr : train->find("optimizer");
  if (optimizer == nullptr || optimizer->kind != Node::Kind::kMap || optimizer->find("lr") != nullptr) return;
  put(*optimizer, "lr", reference(kRate, line));
  put(parameters, kRate, parsed(kRates, line));
}

// Sets the median rule, unless the method stops trials itself or the config says how they are stopped.
void stop_early(Node& root, int line) {
  const Node* method = root.find("method");
  const auto* word = method == nullptr ? nullptr : std::get_if<std::string>(&method->value);
  const auto& all = search::methods();
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const search::Method& m) { return word != nullptr && m.name == *word; });
  if (known != all.end() && known->scheduler != nullptr) return;
  put(root, "early_stopping", parsed("{name: median}", line));
}

}  // namespace

void expand_auto_lora(Node& root) {
  Node* model = root.find("model");
  Node* adapters = model == nullptr ? nullptr : model->find("adapters");
  Node* lora = adapters == nullptr ? nullptr : adapters->find("lora");
  const auto* word = lora == nullptr ? nullptr : std::get_if<std::string>(&lora->value);
  if (word == nullptr || lora->kind != Node::Kind::kScalar || *word != "auto") return;
  const int line = lora->line;
  *lora = map_at(line);
  for (const Prior& prior : kPriors) put(*lora, prior.key, reference(prior.parameter, line));
  // Appending to the root moves what it holds, so nothing of it is kept over these calls.
  stop_early(root, line);
  Node& parameters = child(root, "parameters", line);
  for (const Prior& prior : kPriors) put(parameters, prior.parameter, parsed(prior.distribution, line));
  search_rate(root, parameters, line);
}

}  // namespace hfta::engine::configuration
