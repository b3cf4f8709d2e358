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
  Fnv1a hash;  // file names only have to differ; the key itself is compared
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
    fusion::ChoiceOrigin& how = kept->choices.how;
    if (how != fusion::ChoiceOrigin::kNotMeasured) how = fusion::ChoiceOrigin::kRemembered;
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

// Linux has no names for ARM's cores, but numbers.
std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  std::string numbers;
  for (std::string line; std::getline(info, line) && !(line.empty() && !numbers.empty());) {
    const std::size_t colon = line.find(':'), value = line.find_first_not_of(" \t", colon + 1);
    if (colon == line.npos || value == line.npos) continue;
    if (line.starts_with("model name")) return line.substr(value);
    if (line.starts_with("CPU ")) numbers += (numbers.empty() ? "" : " ") + line.substr(value);
  }
  return numbers.empty() ? "unknown" : "ARM " + numbers;
}

}  // namespace hfta::engine
