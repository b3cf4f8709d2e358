#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/key_tables.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

const fusion::OptimizerInfo& optimizer_named(std::string_view name) {
  const auto& all = fusion::optimizers();
  return *std::find_if(all.begin(), all.end(), [&](const fusion::OptimizerInfo& info) { return info.name == name; });
}

const fusion::HyperField& field_named(std::string_view name) {
  const auto& all = fusion::hyper_fields();
  return *std::find_if(all.begin(), all.end(), [&](const fusion::HyperField& field) { return field.name == name; });
}

// Reads the numbers of the optimizer, or of a group of parameters. Numbers that are left out stay as they were; the
// optimizer's, which are then defaults, are recorded too.
class NumberReader {
 public:
  NumberReader(Reader& section, bool record_defaults) : section_(section), record_defaults_(record_defaults) {}

  void read(const fusion::OptimizerInfo& kind, fusion::OptimizerHyper& hyper) {
    for (const fusion::HyperField& field : fusion::hyper_fields()) {
      const std::string_view key = field.name;
      const bool reads = std::any_of(kind.hypers.begin(), kind.hypers.end(),
                                     [&](const fusion::HyperDefault& given) { return given.name == key; });
      if (!reads) continue;
      const HyperList* list = list_with(key);
      if (list != nullptr && section_.has(list->name)) {
        if (key == list->of.front()) read_list(*list, hyper);
      } else if (const auto* flag = std::get_if<bool fusion::OptimizerHyper::*>(&field.field)) {
        if (is_read(key)) hyper.** flag = section_.flag(key);
      } else {
        number(key, hyper.*std::get<double fusion::OptimizerHyper::*>(field.field));
      }
    }
    if (hyper.nesterov && (hyper.momentum <= 0 || hyper.dampening != 0)) {
      section_.fail("nesterov", fmt::format("found true with momentum {} and dampening {}, wanted momentum above 0 and "
                                            "dampening 0",
                                            shortest(hyper.momentum), shortest(hyper.dampening)));
    }
  }

 private:
  [[nodiscard]] bool is_read(std::string_view key) const { return record_defaults_ || section_.has(key); }
  void number(std::string_view key, double& value) {
    if (is_read(key)) value = section_.number_or(key, value);
  }

  void read_list(const HyperList& list, fusion::OptimizerHyper& hyper) {
    for (const std::string_view key : list.of) {
      if (section_.has(key)) section_.fail(key, fmt::format("found it beside {}, wanted one or the other", list.name));
    }
    const Node& node = *section_.find(list.name);
    const Site site = section_.site(list.name);
    if (node.kind != Node::Kind::kList || node.items.size() != list.of.size()) site.mismatch(node);
    for (std::size_t i = 0; i < list.of.size(); ++i) {
      const auto member = std::get<double fusion::OptimizerHyper::*>(field_named(list.of[i]).field);
      hyper.*member = item(node.items[i], join_path(site.path, std::to_string(i)), list.of[i]);
    }
  }

  double item(const Node& node, const std::string& path, std::string_view key) {
    const Site one = section_.site(key);
    section_.record(key, node.from.empty() ? json(one.number(node)) : to_json(node));
    return Site{one.file, path, one.key}.number(node);
  }

  Reader& section_;
  bool record_defaults_;
};

// Records groups only if there are some, so that studies from before there was the key compare as equal.
void read_groups(Reader& optimizer, const fusion::OptimizerInfo& kind, const std::vector<std::string>& possible,
                 OptimizerRead& found) {
  const Node* list = optimizer.find("groups");
  if (list == nullptr || list->is_null()) return;
  const Site site = optimizer.site("groups");
  if (list->kind != Node::Kind::kList || list->items.empty()) site.mismatch(*list);
  json& recorded = optimizer.record("groups", json::array());
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    json record;
    Reader group(site.file, list->items[i], join_path(site.path, std::to_string(i)), site.key.path + ".*", record);
    group.restrict_to(kind.name, possible);
    found.groups.push_back(read_params(group));
    fusion::OptimizerHyper hyper = found.hyper;
    NumberReader(group, false).read(kind, hyper);
    if (group.has("lr_scale")) {
      if (group.has("lr")) group.fail("lr_scale", "found it beside lr, wanted one or the other");
      hyper.lr *= group.number("lr_scale");
    }
    found.group_hypers.push_back(hyper);
    recorded.push_back(std::move(record));
  }
}

}  // namespace

fusion::ParameterGroup read_params(Reader& section) {
  const Node* node = section.find("params");
  const Site site = section.site("params");
  if (node == nullptr) section.fail("params", "found nothing, wanted " + wanted_text(site.key));
  section.record("params", node->kind == Node::Kind::kList ? to_json(*node) : json::array({to_json(*node)}));
  return {site.words(*node), fmt::format("{}: {}", place_of(site.file, *node), site.path)};
}

OptimizerRead read_optimizer(Reader& optimizer, const trials::Space& space) {
  const std::string name = optimizer.word("name");
  const std::vector<std::string> possible = possible_words(optimizer.find("name"), space);
  optimizer.restrict_to(name, possible);
  const fusion::OptimizerInfo& kind = optimizer_named(name);
  OptimizerRead found{kind.kind, fusion::default_hyper(kind.kind)};
  NumberReader(optimizer, true).read(kind, found.hyper);
  read_groups(optimizer, kind, possible, found);
  return found;
}

}  // namespace hfta::engine::configuration
