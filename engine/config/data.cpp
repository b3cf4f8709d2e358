#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

namespace fs = std::filesystem;

fs::path from_folder(const fs::path& folder, const std::string& path) { return (folder / path).lexically_normal(); }

// Reads the source: a built-in set, a table, raw tokens, or arrays. The other keys that there are depend on it.
std::string read_source(Reader& data, const fs::path& folder, const trials::Space& space, TaskSpec& task) {
  const auto name = data.optional_word("name");
  const auto train = data.optional_word("train");
  if (name && train) data.fail("name", "found both name and train, wanted one of them");
  if (!name && !train) {
    data.fail(
        "train",
        fmt::format(
            "found nothing, wanted a file of data (.npz, .npy, .csv, .safetensors, ...), or a built-in set: name: {}",
            join(fusion::builtin_data())));
  }
  const auto kind_of = [&](const std::string& file) {
    const fs::path path = from_folder(folder, file);
    if (const std::string unread = fusion::unread_kind(path); !unread.empty()) {
      data.fail("train", fmt::format("'{}': {}", printable(file), unread));
    }
    const fusion::DataKeys keys = fusion::data_keys(path);
    if (keys == fusion::DataKeys::kTokens) return "tokens";
    return keys == fusion::DataKeys::kColumns ? "table" : "arrays";
  };
  const std::string kind = name ? "built-in" : kind_of(*train);
  std::vector<std::string> possible = {kind};
  if (train) {
    for (const std::string& file : possible_words(data.find("train"), space)) possible.emplace_back(kind_of(file));
  }
  data.restrict_to(kind, possible);
  if (name) task.data.name = *name;
  if (train) task.data.train = from_folder(folder, *train);
  return kind;
}

// Reads `validation` or `test`: a fraction of the training data, or a file.
void read_part(Reader& data, const char* key, bool builtin, const fs::path& folder, std::optional<double>& fraction,
               fs::path& file) {
  const Node* node = data.find(key);
  if (node == nullptr || node->is_null()) return;
  const Site site = data.site(key);
  if (node->kind == Node::Kind::kScalar && std::holds_alternative<std::string>(node->value) && !node->out_of_range) {
    if (builtin) {
      site.fail(*node,
                fmt::format("found {}, wanted a fraction between 0 and 1 of the built-in data", found_text(*node)));
    }
    file = from_folder(folder, site.word(*node));
  } else {
    fraction = site.number(*node);
  }
  data.record(key, to_json(*node));
}

constexpr const char* kNoTargets = "found it beside a loss of the model, whose labels are among the inputs (x)";

void read_arrays(Reader& data, bool labelled, TaskSpec& task) {
  const bool pair = fusion::data_keys(task.data.train) == fusion::DataKeys::kPair;
  if (const Node* x = data.find("x")) {
    if (pair) data.fail("x", "found names beside a file of inputs, wanted one or the other");
    task.data.x = data.site("x").words(*x);
    data.record("x", to_json(*x));
  } else {
    data.record("x", "x");
  }
  if (!labelled) {
    if (data.has("y")) data.fail("y", kNoTargets);
    return;
  }
  if (pair && !data.has("y")) data.fail("y", "found nothing, wanted the file of the targets");
  task.data.y = data.word("y");
}

void read_table(Reader& data, bool labelled, TaskSpec& task) {
  if (!labelled && data.has("target")) data.fail("target", kNoTargets);
  if (labelled) task.data.target = data.word("target");
  const Node* features = data.find("features");
  if (features == nullptr) return;
  task.data.features = data.site("features").words(*features);
  data.record("features", to_json(*features));
}

void read_tokens(Reader& data, TaskSpec& task) {
  if (!data.has("window")) {
    data.fail("window",
              "found nothing, wanted how many tokens a sample has: a .bin file is read as raw tokens, unless it has a "
              "name of CIFAR's");
  }
  task.data.window = data.integer("window");
  if (data.has("stride")) task.data.stride = data.integer("stride");
  task.data.dtype = data.word("dtype");
}

void read_order(Reader& data, TaskSpec& task) {
  task.order.per_trial = data.word("order") == "per_trial";
  const Node* shuffle = data.find("shuffle");
  data.record("shuffle", shuffle != nullptr ? to_json(*shuffle) : nlohmann::json(true));
  if (shuffle == nullptr) return;
  const auto* word = std::get_if<std::string>(&shuffle->value);
  if (shuffle->kind == Node::Kind::kScalar && word != nullptr && *word == "once") {
    task.order.once = true;
  } else {
    task.order.shuffle = data.site("shuffle").flag(*shuffle);
  }
}

}  // namespace

void read_data(Reader& data, const fs::path& folder, const trials::Space& space, bool labelled, TaskSpec& task) {
  const std::string kind = read_source(data, folder, space, task);
  fusion::DataSource& source = task.data;
  read_part(data, "validation", kind == "built-in", folder, source.validation, source.validation_file);
  read_part(data, "test", kind == "built-in", folder, source.test, source.test_file);
  if (source.validation && source.test && *source.validation + *source.test >= 1) {
    data.fail("test", fmt::format("found {} beside a validation of {}, wanted less than 1 together",
                                  shortest(*source.test), shortest(*source.validation)));
  }
  if (kind == "arrays") read_arrays(data, labelled, task);
  if (kind == "table") read_table(data, labelled, task);
  if (kind == "tokens") read_tokens(data, task);
  task.recipe.batch_size = static_cast<int>(data.integer("batch_size"));
  read_order(data, task);
  task.drop_last = data.flag("drop_last");
}

}  // namespace hfta::engine::configuration
