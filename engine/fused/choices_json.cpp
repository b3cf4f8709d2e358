#include "engine/fused/choices_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_int.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

using nlohmann::ordered_json;

// The first two executors have a flag in stores, and no name. Stores of 0.1, which had one executor, lack the flag.
constexpr const char* kUnflagged = "eager";
constexpr const char* kFlagged = "compiled";

ordered_json lowering_json(const fusion::Lowering& l) {
  const bool flagged = l.executor == kFlagged;
  ordered_json json = {{kFlagged, flagged},      {"chunk", l.chunk},     {"channels_last", l.channels_last},
                       {"families", l.families}, {"workers", l.workers}, {"threads_per_worker", l.threads_per_worker}};
  if (!flagged && l.executor != kUnflagged) json["executor"] = l.executor;
  if (l.recompute != 0) json["recompute"] = l.recompute;
  return json;
}

fusion::Lowering lowering_from(const ordered_json& json) {
  fusion::Lowering l;
  l.executor = json.value("executor", std::string(json.value(kFlagged, false) ? kFlagged : kUnflagged));
  l.chunk = int_from(json.at("chunk"));
  json.at("channels_last").get_to(l.channels_last);
  json.at("families").get_to(l.families);
  l.workers = int_from(json.at("workers"));
  l.threads_per_worker = int_from(json.at("threads_per_worker"));
  if (json.contains("recompute")) l.recompute = int_from(json.at("recompute"));
  return l;
}

bool possible(const fusion::Measured& candidate) {
  const fusion::Lowering& l = candidate.lowering;
  return l.chunk >= 1 && l.workers >= 1 && l.threads_per_worker >= 1 && l.recompute >= 0 &&
         std::isfinite(candidate.wave_seconds) && candidate.wave_seconds >= 0;
}

}  // namespace

std::string ChoiceKey::to_text() const {
  // The number at the front is raised when there are new ways to run, so that they are tried.
  const std::string plain = fmt::format("3|{}|{}|width {}|threads {}|{}", device, library, width, threads, graph);
  return memory.empty() ? plain : plain + "|memory " + memory;
}

ordered_json to_json(const KeptChoices& kept) {
  ordered_json candidates = ordered_json::array();
  for (const fusion::Measured& measured : kept.choices.candidates) {
    candidates.push_back({{"lowering", lowering_json(measured.lowering)}, {"wave_seconds", measured.wave_seconds}});
  }
  ordered_json json = {
      {"how", name_of(kept.choices.how)}, {"device", kept.key.device},         {"library", kept.key.library},
      {"graph", kept.key.graph},          {"width", kept.key.width},           {"threads", kept.key.threads},
      {"slot_steps", kept.slot_steps},    {"complete", kept.choices.complete}, {"candidates", std::move(candidates)}};
  if (!kept.key.memory.empty()) json["memory"] = kept.key.memory;
  if (kept.ranks) json["ranks"] = to_json(*kept.ranks);
  return json;
}

std::optional<KeptChoices> kept_choices(const ordered_json& json) {
  try {
    KeptChoices kept;
    const auto how = std::find_if(
        std::begin(fusion::kChoiceOrigins), std::end(fusion::kChoiceOrigins),
        [name = json.at("how").get<std::string>()](fusion::ChoiceOrigin origin) { return name == name_of(origin); });
    if (how == std::end(fusion::kChoiceOrigins)) return std::nullopt;
    kept.choices.how = *how;
    json.at("device").get_to(kept.key.device);
    json.at("library").get_to(kept.key.library);
    json.at("graph").get_to(kept.key.graph);
    kept.key.width = int_from(json.at("width"));
    kept.key.threads = int_from(json.at("threads"));
    kept.key.memory = json.value("memory", std::string());
    json.at("slot_steps").get_to(kept.slot_steps);
    json.at("complete").get_to(kept.choices.complete);
    if (json.contains("ranks")) kept.ranks = rank_plans_from(json.at("ranks"));
    for (const ordered_json& entry : json.at("candidates")) {
      kept.choices.candidates.push_back({lowering_from(entry.at("lowering")), entry.at("wave_seconds").get<double>()});
      if (!possible(kept.choices.candidates.back())) return std::nullopt;
    }
    if (kept.choices.candidates.empty() || kept.key.width < 1) return std::nullopt;
    return kept;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

std::optional<KeptChoices> recorded_choices(const std::string& choices_json) {
  const ordered_json json = ordered_json::parse(choices_json, nullptr, false);
  if (!json.is_object() || !json.contains("choices")) return std::nullopt;
  return kept_choices(json.at("choices"));
}

std::string beyond_bounds(const KeptChoices& kept) {
  constexpr int kWidest = 4096;  // the limit of the keys array.width and array.threads
  if (kept.key.width > kWidest) return fmt::format("an array of width {}", kept.key.width);
  if (kept.key.threads > kWidest) return fmt::format("{} threads", kept.key.threads);
  for (const fusion::Measured& candidate : kept.choices.candidates) {
    const fusion::Lowering& l = candidate.lowering;
    if (l.chunk > kept.key.width) return fmt::format("chunk {} in an array of width {}", l.chunk, kept.key.width);
    if (l.workers > kept.key.threads || l.threads_per_worker > kept.key.threads / l.workers) {
      return fmt::format("{} x {} threads of {}", l.workers, l.threads_per_worker, kept.key.threads);
    }
  }
  return "";
}

std::string difference_of(const ChoiceKey& before, const ChoiceKey& now) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, const auto& then, const auto& today) {
    if (then != today) parts.push_back(fmt::format("{} {} (now {})", what, then, today));
  };
  compare("device", before.device, now.device);
  compare("LibTorch", before.library, now.library);
  compare("threads", before.threads, now.threads);
  const auto memory_of = [](const ChoiceKey& key) { return key.memory.empty() ? std::string("auto") : key.memory; };
  compare("memory", memory_of(before), memory_of(now));
  if (!before.graph.empty() && !now.graph.empty() && before.graph != now.graph) {
    parts.emplace_back("another graph of the model");
  }
  return join(parts);
}

}  // namespace hfta::engine
