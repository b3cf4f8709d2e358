// model.adapters
#include "fusion/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/task.hpp"
#include "fusion/optimizer.hpp"
#include "search/choices.hpp"
#include "search/space.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

// A word or a list of them, recorded as a list.
std::vector<std::string> read_names(Reader& section, const char* key, std::vector<std::string> fallback) {
  const Node* node = section.find(key);
  if (node == nullptr || node->is_null()) {
    section.record(key, json(fallback));
    return fallback;
  }
  section.record(key, node->kind == Node::Kind::kList ? to_json(*node) : json::array({to_json(*node)}));
  return section.site(key).words(*node);
}

// The largest rank that the study may give a trial; ranks below are padded to it.
std::int64_t largest_rank(const Reader& lora, const trials::Space& space, std::int64_t own) {
  const Node* node = lora.find("rank");
  if (node == nullptr || node->from.empty()) return own;
  const auto parameter =
      std::find_if(space.begin(), space.end(), [&](const trials::Parameter& one) { return one.name == node->from; });
  const auto choices = parameter == space.end() ? std::nullopt : search::Choices::of(parameter->distribution);
  if (!choices) {
    lora.fail("rank", fmt::format("found ${{{}}}, which may have any value, wanted finitely many (value, values, "
                                  "int_uniform, q_uniform): adapters are as large as the largest",
                                  printable(node->from)));
  }
  std::int64_t largest = own;
  for (const trials::ParamValue& value : search::extremes(parameter->distribution)) {
    Node one = *node;
    one.value = value;
    largest = std::max(largest, lora.site("rank").integer(one));
  }
  return largest;
}

// A searched rate that is null or 0 drops nothing; its trials share an array with those that do.
std::optional<double> read_dropout(Reader& lora) {
  const Node* node = lora.find("dropout");
  if (node == nullptr) return std::nullopt;
  const double rate = lora.optional_number("dropout").value_or(0);
  return rate == 0 && node->from.empty() ? std::nullopt : std::optional(rate);
}

void check_optimizer(const Reader& train, const fusion::Lora& lora, fusion::OptimizerKind kind,
                     const fusion::OptimizerHyper& hyper) {
  if (fusion::keeps_zeros(kind, hyper)) return;
  train.fail(
      train.has("phases") ? "phases" : "optimizer",
      fmt::format("found {} with eps {}, which moves zeros, and adapters of smaller ranks are padded with zeros to "
                  "rank {}; wanted eps above 0, or one model.adapters.lora.rank for all trials",
                  fusion::name_of(kind), shortest(hyper.eps), lora.largest_rank));
}

}  // namespace

fusion::Lora read_adapters(Reader& adapters, const std::string& file, const trials::Space& space) {
  fusion::Lora lora;
  Reader section = adapters.section("lora");
  lora.where = fmt::format("{}: {}", place_of(file, *adapters.find("lora")), adapters.path());
  lora.train = read_names(adapters, "train", {});
  lora.targets = read_names(section, "targets", {fusion::kAllLinear});
  lora.rank = section.integer("rank");
  lora.largest_rank = largest_rank(section, space, lora.rank);
  lora.alpha = section.optional_number("alpha").value_or(static_cast<double>(lora.rank));
  lora.dropout = read_dropout(section);
  lora.scale = section.word("scale") == "rslora" ? fusion::LoraScale::kRankStabilized : fusion::LoraScale::kStandard;
  return lora;
}

void check_padding(const Reader& train, const TaskSpec& task) {
  if (!task.model_file || !task.model_file->import.lora) return;
  const fusion::Lora& lora = *task.model_file->import.lora;
  if (lora.rank == lora.largest_rank) return;
  check_optimizer(train, lora, task.recipe.optimizer, task.hyper.optimizer);
  for (const fusion::OptimizerHyper& group : task.hyper.groups) {
    check_optimizer(train, lora, task.recipe.optimizer, group);
  }
  for (std::size_t p = 0; p < task.hyper.phases.size(); ++p) {
    const fusion::PhaseHyper& phase = task.hyper.phases[p];
    check_optimizer(train, lora, task.recipe.phases[p].optimizer, phase.optimizer);
    for (const fusion::OptimizerHyper& group : phase.groups) {
      check_optimizer(train, lora, task.recipe.phases[p].optimizer, group);
    }
  }
}

}  // namespace hfta::engine::configuration
