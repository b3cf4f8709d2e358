#include "engine/fused/choice_cache.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

json to_json(const fusion::Lowering& l) {
  return {{"chunk", l.chunk},
          {"channels_last", l.channels_last},
          {"families", l.families},
          {"workers", l.workers},
          {"threads_per_worker", l.threads_per_worker}};
}

fusion::Lowering lowering_from(const json& j) {
  fusion::Lowering l;
  j.at("chunk").get_to(l.chunk);
  j.at("channels_last").get_to(l.channels_last);
  j.at("families").get_to(l.families);
  j.at("workers").get_to(l.workers);
  j.at("threads_per_worker").get_to(l.threads_per_worker);
  if (l.chunk < 1 || l.workers < 1 || l.threads_per_worker < 1) throw Error(ErrorKind::kStorage, "choice out of range");
  return l;
}

}  // namespace

std::string ChoiceKey::to_text() const {
  return fmt::format("{}|{}|width {}|threads {}|{}", device, library, width, threads, graph);
}

ChoiceCache::ChoiceCache(Files& files, std::filesystem::path folder) : files_(files), folder_(std::move(folder)) {}

std::filesystem::path ChoiceCache::path_of(const ChoiceKey& key) const {
  Fnv1a hash;  // the name only has to spread; the key itself is compared
  hash.add(key.to_text());
  return folder_ / fmt::format("{:016x}.json", hash.value());
}

std::optional<fusion::MeasuredChoices> ChoiceCache::find(const ChoiceKey& key) {
  if (folder_.empty() || !files_.exists(path_of(key))) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = files_.read(path_of(key), std::size_t{1} << 20);
    const json file = json::parse(reinterpret_cast<const char*>(bytes.data()),
                                  reinterpret_cast<const char*>(bytes.data()) + bytes.size());
    if (file.at("key") != key.to_text()) return std::nullopt;
    fusion::MeasuredChoices choices;
    choices.how = file.at("how") == "not measured" ? "not measured" : "remembered";
    for (const json& entry : file.at("candidates")) {
      choices.candidates.push_back({lowering_from(entry.at("lowering")), entry.at("wave_seconds").get<double>()});
    }
    if (choices.candidates.empty()) return std::nullopt;
    return choices;
  } catch (const json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ChoiceCache::remember(const ChoiceKey& key, const fusion::MeasuredChoices& choices) {
  if (folder_.empty()) return;
  json candidates = json::array();
  for (const fusion::Measured& measured : choices.candidates) {
    candidates.push_back({{"lowering", to_json(measured.lowering)}, {"wave_seconds", measured.wave_seconds}});
  }
  const std::string text =
      json{{"key", key.to_text()}, {"how", choices.how}, {"candidates", candidates}}.dump(1) + "\n";
  try {
    files_.write_atomically(path_of(key), std::as_bytes(std::span(text)));
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
