#pragma once
/// Measured lowerings, remembered per machine: `${HFTA_CACHE:-~/.cache/hfta-tune}/<key>.json`.

#include <filesystem>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "engine/fused/choices_json.hpp"

namespace hfta::engine {

/// A damaged or foreign file counts as absent; a cache that cannot be written is no error (it only remembers).
class ChoiceCache {
 public:
  /// An empty folder remembers nothing.
  ChoiceCache(Files& files, std::filesystem::path folder);
  /// The remembered choices. nullopt, too, where at least ten times as much work lies ahead as they were measured for,
  /// and some candidates were then left out.
  [[nodiscard]] std::optional<KeptChoices> find(const ChoiceKey& key, double slot_steps);
  void remember(const KeptChoices& kept);

 private:
  [[nodiscard]] std::filesystem::path path_of(const ChoiceKey& key) const;

  Files& files_;
  std::filesystem::path folder_;
};

/// The processor's name as the machine tells it.
[[nodiscard]] std::string cpu_model();

}  // namespace hfta::engine
