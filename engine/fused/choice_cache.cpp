#include "engine/fused/choice_cache.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hfta::engine {

namespace {

using nlohmann::ordered_json;

constexpr double kMuchMoreWork = 10;

}  // namespace

ChoiceCache::ChoiceCache(Files& files, std::filesystem::path folder) : files_(files), folder_(std::move(folder)) {}

std::filesystem::path ChoiceCache::path_of(const ChoiceKey& key) const {
  Fnv1a hash;  // the name only has to spread; the key itself is compared
  hash.add(key.to_text());
  return folder_ / fmt::format("{:016x}.json", hash.value());
}

std::optional<KeptChoices> ChoiceCache::find(const ChoiceKey& key, double slot_steps) {
  if (folder_.empty() || !files_.exists(path_of(key))) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = files_.read(path_of(key), std::size_t{1} << 20);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    std::optional<KeptChoices> kept = kept_choices(ordered_json::parse(text, text + bytes.size(), nullptr, false));
    if (!kept || kept->key != key || !beyond_bounds(*kept).empty()) return std::nullopt;
    const bool outgrown = slot_steps > 0 && slot_steps >= kMuchMoreWork * kept->slot_steps;
    if (outgrown && !kept->choices.complete) return std::nullopt;
    if (kept->choices.how != "not measured") kept->choices.how = "remembered";
    return kept;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ChoiceCache::remember(const KeptChoices& kept) {
  if (folder_.empty()) return;
  const std::string text = to_json(kept).dump(1) + "\n";
  try {
    files_.write_atomically(path_of(kept.key), std::as_bytes(std::span(text)));
  } catch (const Error&) {
    // A read-only home folder must not end a study: the choice is measured again next time.
  }
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace hfta::engine
