// points and warm_start: what a study begins with.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/study.hpp"
#include "search/sampler/begun.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPoints = 10'000;

trials::Params read_point(const Site& site, const Node& node, const StudyConfig& config) {
  if (node.kind != Node::Kind::kMap) site.mismatch(node);
  trials::Params point;
  for (const Entry& entry : node.entries) {
    if (entry.value.kind != Node::Kind::kScalar || entry.value.out_of_range) site.mismatch(entry.value);
    point.emplace_back(entry.key, entry.value.value);
  }
  std::string problem;
  (void)search::completed_point(config.space, point, config.seed, static_cast<int>(config.points.size()),
                                config.constraints, problem);
  const std::string enqueued = "enqueued ";
  if (problem.starts_with(enqueued)) problem = "found a point " + problem.substr(enqueued.size());
  if (!problem.empty()) site.fail(node, problem);
  return point;
}

void read_points(Reader& root, StudyConfig& config) {
  const Node* list = root.find("points");
  if (list == nullptr || list->is_null()) return;
  const Site site = root.site("points");
  if (list->kind != Node::Kind::kList) site.mismatch(*list);
  if (list->items.size() > kMostPoints) {
    site.fail(*list, fmt::format("found {} of them, wanted at most {}", list->items.size(), kMostPoints));
  }
  for (const Node& node : list->items) config.points.push_back(read_point(site, node, config));
  if (!config.points.empty()) root.record("points", to_json(*list));
}

void read_warm_start(Reader& root, StudyConfig& config) {
  const Node* node = root.find("warm_start");
  if (node == nullptr || node->is_null()) return;
  Reader section = root.section("warm_start");
  WarmStart from;
  from.study = section.word("study");
  const std::string url = section.word("storage");
  try {
    from.storage = storage::resolve_store(url, config.folder);
  } catch (const Error& error) {
    const std::string message = error.what();  // begins with its own "storage: "
    section.fail("storage", message.starts_with("storage: ") ? message.substr(9) : message);
  }
  config.warm_start = std::move(from);
}

}  // namespace

void read_beginnings(Reader& root, StudyConfig& config) {
  read_points(root, config);
  read_warm_start(root, config);
}

}  // namespace hfta::engine::configuration
