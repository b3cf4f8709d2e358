#pragma once
/// Chosen lowerings as JSON: the one form of them, in the cache and in the study's store.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/division/division.hpp"
#include "fusion/measured.hpp"

namespace hfta::engine {

/// Everything that a choice depends on.
struct ChoiceKey {
  std::string device, library;  ///< Device, CPU model and instruction set; LibTorch's version.
  std::string graph;  ///< Dtype and precision, optimizer, loss, batch size, and a hash of the graph's signature.
  int width = 0;      ///< Width of arrays that lowerings were measured for.
  int threads = 0;
  std::string memory = {};  ///< "recompute", "auto within 8.0 GiB"; "" for the defaults.
  bool operator==(const ChoiceKey&) const = default;
  [[nodiscard]] std::string to_text() const;
};

/// Choices with all that is needed to judge whether they still hold.
struct KeptChoices {
  ChoiceKey key;
  fusion::MeasuredChoices choices;
  double slot_steps = 0;                ///< Work ahead when they were measured, which bounded what that could cost.
  std::optional<RankPlans> ranks = {};  ///< How several ranks share the arrays; unset: nothing of it is known.

  [[nodiscard]] bool divides_batches() const { return ranks && ranks->chosen.of == Division::Of::kBatches; }
  /// Number of stages of the pipeline that the ranks form; 1: they form none.
  [[nodiscard]] int stages() const {
    return ranks && ranks->chosen.of == Division::Of::kStages ? static_cast<int>(ranks->chosen.parts.size()) : 1;
  }
};

/// {"how", "device", "library", "graph", "width", "threads", "slot_steps", "complete", "candidates": [{"lowering",
/// "wave_seconds"}]}, "memory" where the config names a budget, and "ranks" (engine/division/division.hpp) where they
/// are known.
[[nodiscard]] nlohmann::ordered_json to_json(const KeptChoices& kept);
/// The inverse of to_json(), exact; nullopt for anything else. Does not check whether these lowerings run here:
/// fusion::is_runnable does.
[[nodiscard]] std::optional<KeptChoices> kept_choices(const nlohmann::ordered_json& json);
/// The choices in an ArrayInfo::choices_json, under "choices"; nullopt if it has none.
[[nodiscard]] std::optional<KeptChoices> recorded_choices(const std::string& choices_json);

/// The first number among the choices that no run would have chosen, in words: "chunk 100000 in an array of width 16";
/// "" if there is none. Chunks are no wider than the array, and threads no more than the key's, which is compared with
/// this machine's: a store or a cache from elsewhere cannot ask for more.
[[nodiscard]] std::string beyond_bounds(const KeptChoices& kept);

/// The differences in device, library, threads and graph, in words: "LibTorch 2.10.0 (now 2.11.0)"; "" for none.
/// The width is no difference: that of `before` is what its lowering was chosen for. An empty graph is not compared.
[[nodiscard]] std::string difference_of(const ChoiceKey& before, const ChoiceKey& now);

}  // namespace hfta::engine
