#include "engine/config/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/repetition.hpp"
#include "fusion/collectives.hpp"
#include "search/choices.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine::configuration {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostName = 200;  // so that files named after it, with their extensions, can be made

std::string study_name(Reader& root, const fs::path& file) {
  std::string name = root.optional_word("study").value_or(file.stem().string());
  if (name.empty() || name.size() > kMostName || printable(name) != name) {
    root.fail("study", fmt::format("found '{}', wanted a name of 1 to {} printable characters",
                                   printable(name.substr(0, 60)), kMostName));
  }
  return name;
}

// A store named after its study stays in the config's folder, whatever the name.
std::string default_storage(const StudyConfig& config) {
  std::string name = config.study;
  std::replace(name.begin(), name.end(), '/', '_');
  return (config.folder / (name + ".db")).string();
}

std::string storage_url(Reader& root, const StudyConfig& config) {
  const Node* node = root.find("storage");
  if (node == nullptr || node->is_null()) return default_storage(config);
  const std::string url = root.site("storage").word(*node);
  try {
    return storage::resolve_store(url, config.folder);
  } catch (const Error& error) {
    const std::string message = error.what();  // begins with its own "storage: "
    root.fail("storage", message.starts_with("storage: ") ? message.substr(9) : message);
  }
}

std::string method_name(Reader& root) {
  const Node* node = root.find("method");
  const auto* word = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  const std::vector<search::StoppingRule>& rules = search::stopping_rules();
  if (word != nullptr &&
      std::any_of(rules.begin() + 1, rules.end(), [&](const auto& rule) { return rule.name == *word; })) {
    root.fail("method",
              fmt::format("found {}, which stops trials rather than chooses them; wanted `early_stopping: {}` "
                          "beside method: random",
                          found_text(*node), *word));
  }
  if (word != nullptr && *word == "bayes") {  // W&B's name for it
    root.record("method", "gp");
    return "gp";
  }
  return root.word("method");
}

// Completes and checks a method's max_epochs: train.epochs gives it where it is left out, and limits it.
void read_epochs(Reader& root, Reader& section, const std::string& file, int& most) {
  const Node* train = root.find("train");
  const Node* epochs = train != nullptr ? train->find("epochs") : nullptr;
  if (most == 0 && epochs == nullptr) {
    section.fail("max_epochs", "found nothing, wanted the most epochs a trial gets (or train.epochs)");
  }
  if (epochs != nullptr) {
    const auto all = static_cast<int>(Site{file, "train.epochs", *find_key("train.epochs")}.integer(*epochs));
    if (most == 0) most = all;
    if (most > all) {
      section.fail("max_epochs", fmt::format("found {}, wanted at most train.epochs = {}", most, all));
    }
  }
  section.record("max_epochs", most);
}

// Sections of other methods are checked too: the method may be what was mistyped.
void read_method(Reader& root, const std::string& file, StudyConfig& config) {
  config.method = method_name(root);
  search::MethodOptions options;
  if (search::method(config.method).takes_sampler) options.sampler = root.section(config.method).word("sampler");
  for (const search::Method& method : search::methods()) {
    const bool chosen = config.method == method.name;
    const bool lends = search::method(config.method).takes_sampler && options.sampler == method.name;
    if (method.fields.empty() || (!chosen && !lends && !root.has(method.name))) continue;
    Reader section = root.section(method.name);
    if (!chosen && !lends) {
      config.warnings.push_back(fmt::format("{}:{}: {}: found it beside method: {}, which does not use it", file,
                                            root.find(method.name)->line, method.name, config.method));
    }
    search::MethodOptions unused;
    search::MethodOptions& those = chosen || lends ? options : unused;
    for (const search::MethodField& field : method.fields) {
      field.of(those) = static_cast<int>(field.fallback == nullptr ? section.integer(field.name)
                                                                   : section.optional_integer(field.name).value_or(0));
    }
    if (!chosen) continue;
    if (method.max_epochs != nullptr) read_epochs(root, section, file, method.max_epochs(options));
    for (const search::MethodField& field : method.fields) {
      if (!field.counts_epochs || field.of(options) <= method.max_epochs(options)) continue;
      section.fail(field.name, fmt::format("found {}, wanted at most max_epochs = {}", field.of(options),
                                           method.max_epochs(options)));
    }
  }
  config.method_options = options;
}

void check_lists(Reader& root, const std::string& file, const StudyConfig& config) {
  const Node& map = *root.find("parameters");
  for (const trials::Parameter& parameter : config.space) {
    if (search::Choices::of(parameter.distribution)) continue;
    fail_at(file, *map.find(parameter.name), join_path("parameters", parameter.name),
            fmt::format("found {}, wanted finitely many values (value, values, int_uniform, q_uniform, "
                        "q_log_uniform): {} search tries them all",
                        trials::name_of(parameter.distribution.kind), config.method));
  }
}

// Whether parts can train each array together: with equally many threads, as all run the way that suits the first.
bool is_joined(const std::vector<std::string>& parts) {
  return parts.size() <= fusion::kMostRanks && cpu_threads(parts.front()) &&
         std::all_of(parts.begin(), parts.end(), [&](const std::string& part) { return part == parts.front(); });
}

bool is_device(const std::string& word) {
  if (const std::vector<std::string> parts = parts_of(word); parts.size() > 1) return is_joined(parts);
  if (word == "auto" || word == "cpu" || word == "cuda" || word == "all") return true;
  if (word.starts_with("cpu:")) return cpu_threads(word).has_value();
  const std::string number = word.starts_with("cuda:") ? word.substr(5) : "";
  return !number.empty() && number.size() <= 3 && number.find_first_not_of("0123456789") == std::string::npos;
}

// Reads array.device: a word, or a list of them; the words for whatever devices there are must stand alone.
std::vector<std::string> read_devices(const Reader& array) {
  const Node* node = array.find("device");
  if (node == nullptr) return {"auto"};
  const Site site = array.site("device");
  std::vector<std::string> words = site.words(*node);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Node& item = node->kind == Node::Kind::kList ? node->items[i] : *node;
    if (!is_device(words[i])) site.mismatch(item);
    if (words.size() > 1 && (words[i] == "auto" || words[i] == "all")) {
      site.fail(item, fmt::format("found {} among {} devices, wanted it alone", words[i], words.size()));
    }
  }
  return words;
}

// The word of a key; null if its value is no word, but a number, say.
const std::string* word_at(const Reader& section, const char* key) {
  const Node* node = section.find(key);
  return node == nullptr || node->kind != Node::Kind::kScalar ? nullptr : std::get_if<std::string>(&node->value);
}

// Reads bytes: a number, or one with a unit; nullopt: auto.
std::optional<std::int64_t> read_bytes(Reader& section, const char* key) {
  const std::string* const word = word_at(section, key);
  if (word == nullptr || *word == "auto") return section.integer_or_auto(key);
  const Site site = section.site(key);
  const std::optional<std::int64_t> bytes = bytes_from(*word);
  if (!bytes || static_cast<double>(*bytes) < site.key.least) site.mismatch(*section.find(key));
  section.record(key, *bytes);
  return bytes;
}

// Reads array.cache in bytes; nullopt: auto.
std::optional<std::int64_t> read_cache(Reader& array) {
  const std::string* const word = word_at(array, "cache");
  if (word != nullptr && *word == "off") return 0;
  return read_bytes(array, "cache");
}

void read_memory(Reader& root, StudyConfig& config) {
  config.memory.given = root.has("memory");
  Reader memory = root.section("memory");
  config.memory.limit = read_bytes(memory, "limit");
  const std::string policy = memory.word("policy");
  config.memory.policy =
      std::find_if(fusion::kMemoryPolicies.begin(), fusion::kMemoryPolicies.end(), [&](const auto& one) {
        return policy == one.first;
      })->second;
  const fusion::Compression compression{memory.number("sigma"), memory.integer("interval")};
  if (config.memory.policy != fusion::MemoryPolicy::kCompress) return;
  config.memory.compression = compression;
  const auto has_ranks = [](const std::string& device) { return parts_of(device).size() > 1; };
  if (std::any_of(config.devices.begin(), config.devices.end(), has_ranks)) {
    memory.fail("policy", "found compress with a device of several ranks, wanted devices of one process each");
  }
}

void read_array(Reader& root, StudyConfig& config) {
  Reader array = root.section("array");
  if (const auto width = array.integer_or_auto("width")) config.width = static_cast<int>(*width);
  if (const auto threads = array.integer_or_auto("threads")) config.threads = static_cast<int>(*threads);
  config.cache = read_cache(array);
  config.devices = read_devices(array);
  config.refill = array.flag("refill");
  config.lend = array.flag("lend");
  const std::string divide = array.word("divide");
  config.divide =
      std::find_if(kDivides.begin(), kDivides.end(), [&](const auto& one) { return divide == one.first; })->second;
}

}  // namespace

void read_study(Reader& root, const std::string& file, StudyConfig& config) {
  config.study = study_name(root, config.file);
  config.storage = storage_url(root, config);
  config.seed = static_cast<std::uint64_t>(root.integer("seed"));
  read_method(root, file, config);
  const search::Method& method = search::method(config.method);
  read_early_stopping(root, file, config);
  read_budget(root, config);
  check_repetitions(root, config);
  if (method.needs_list) check_lists(root, file, config);
  check_dependences(root, config);
  read_beginnings(root, config);
  read_objectives(root, file, config);
  check_several(root, config);
  read_array(root, config);
  read_memory(root, config);
  config.keep = static_cast<int>(root.integer("keep"));
}

}  // namespace hfta::engine::configuration

namespace hfta::engine {

bool StudyConfig::follows_results() const {
  const bool compares = std::any_of(early_stopping.begin(), early_stopping.end(), [](const search::Stopping& one) {
    return search::stopping_rule(one.rule).judge == nullptr;
  });
  return compares || target || search::learns(search::method(method), method_options);
}

}  // namespace hfta::engine
