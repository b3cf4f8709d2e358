#pragma once
/// How earlier runs of a study trained its partitions: whether this run continues so, and the line that tells of
/// results that change a little.

#include <map>
#include <set>
#include <string>

#include "engine/division/division.hpp"
#include "engine/fused/choices_json.hpp"
#include "engine/fused/trainer_setup.hpp"

namespace hfta::engine {

/// Used by one thread at a time.
class RecalledChoices {
 public:
  /// `setup` must outlive this.
  explicit RecalledChoices(const TrainerSetup& setup) : setup_(setup) {}

  /// Trainer::recall. `graph`: ChoiceKey::graph of the partition; "": it is unknown.
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& graph,
                                   const std::string& choices_json);
  /// The partition's choices; null: none were recalled. They stay until others are recalled for it.
  [[nodiscard]] KeptChoices* find(const std::string& partition);
  [[nodiscard]] const KeptChoices* find(const std::string& partition) const;
  /// Whether the study has trained the partition on whole batches so far.
  [[nodiscard]] bool had_whole_batches(const std::string& partition) const;

 private:
  /// Whether these ranks may go on with that division under array.divide.
  [[nodiscard]] bool may_go_on(const Division& division) const;
  /// How a study with these choices divided its batches, in words, if that changes results a little now; "" if not.
  [[nodiscard]] std::string difference_in_batches(const KeptChoices& before) const;
  /// How a study with these choices cut its model into stages, in words, if that changes now; "" if not.
  [[nodiscard]] std::string difference_in_stages(const KeptChoices& before) const;

  const TrainerSetup& setup_;
  std::map<std::string, KeptChoices> recalled_;  ///< By partition.
  std::set<std::string> whole_batches_;          ///< Partitions of recalled_ that have trained on whole batches.
};

}  // namespace hfta::engine
