#pragma once
/// Chooses how arrays run: as an earlier run of the study did, as this machine remembers, or by measuring.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/fused/choice_cache.hpp"
#include "engine/fused/choices_json.hpp"
#include "engine/fused/recalled_choices.hpp"
#include "engine/fused/trainer_parts.hpp"
#include "fusion/lowering.hpp"
#include "fusion/measured.hpp"

namespace hfta::engine {

/// Each choice is made once for all trials whose tasks have the same key. Used by one thread at a time.
class WayChoices {
 public:
  /// All of these must outlive this.
  WayChoices(TrainerParts& parts, Files& files, const Clock& clock);

  /// How arrays of the task run. Measures ways if that is not known yet, for as long as `expected_epochs` are worth,
  /// or until `pause` returns true. Lasts as long as this; later calls of recall() and divide() change it.
  [[nodiscard]] const KeptChoices& choose(const PreparedTask& task, const std::string& partition,
                                          double expected_epochs, const Pause& pause);
  /// Trainer::measure
  [[nodiscard]] std::vector<MeasuredWay> measure(const PreparedTask& task, const Pause& pause);
  /// Notes the partition's ChoiceKey::graph, which recall() compares, unless one is noted.
  void note_graph(const std::string& partition, const std::string& graph);
  /// Trainer::recall
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json);
  /// RankTrainer::divide. REQUIRES as RankTrainer::division.
  void divide(const PreparedTask& task, const std::string& partition, const RankPlans& plans, const Pause& pause);
  /// RecalledChoices::had_whole_batches()
  [[nodiscard]] bool had_whole_batches(const std::string& partition) const;
  /// Trainer::step_seconds
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const;
  /// The width for which arrays of that width choose their way: on a CPU one way serves all widths.
  [[nodiscard]] int decided_width(const KeptChoices& kept, int width) const;

 private:
  /// choose(), to be changed.
  [[nodiscard]] KeptChoices& entry(const PreparedTask& task, const std::string& partition, double expected_epochs,
                                   const Pause& pause);
  /// `alike`: fusion::MeasureOptions::alike.
  [[nodiscard]] KeptChoices measured(const PreparedTask& task, const ChoiceKey& key, double expected_epochs,
                                     const fusion::MeasuredChoices* alike, const Pause& pause);

  TrainerParts& parts_;
  const Clock& clock_;
  ChoiceCache cache_;
  RecalledChoices recalled_;
  std::map<std::string, KeptChoices> choices_;       ///< By ChoiceKey::graph.
  std::map<std::string, const KeptChoices*> alike_;  ///< By a graph's ops: the first such graph's entry of choices_.
  std::map<std::string, std::string> graphs_;        ///< Partition -> ChoiceKey::graph, of those checked or opened.
};

}  // namespace hfta::engine
