#pragma once
/// How the ranks of one device share the arrays of a partition: arithmetic on measured times. Without torch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hfta::engine {

/// array.divide
enum class Divide {
  kAuto,         ///< The plan that was fastest when it was tried.
  kBatches,      ///< Every batch, by the ranks' speeds.
  kEvenBatches,  ///< Every batch, into equal parts.
  kSlots,        ///< Slots, by the ranks' speeds.
  kStages,       ///< The layers of the model.
};

/// The settings by their names in configs.
inline constexpr std::array<std::pair<const char*, Divide>, 5> kDivides = {{{"auto", Divide::kAuto},
                                                                            {"batches", Divide::kBatches},
                                                                            {"batches_evenly", Divide::kEvenBatches},
                                                                            {"slots", Divide::kSlots},
                                                                            {"stages", Divide::kStages}}};

[[nodiscard]] constexpr const char* name_of(Divide divide) {
  return kDivides.at(static_cast<std::size_t>(divide)).first;
}

struct Division {
  enum class Of {
    kBatches,  ///< Every rank has all slots, and of every batch the samples that fusion::share_of_batch says.
    kSlots,    ///< Every rank has some slots, and whole batches: no gradient travels.
    kStages,   ///< Every rank has some layers of all slots, and whole batches: a pipeline (fusion::Shares::kStages).
  };
  Of of = Of::kBatches;
  /// Each rank's part, 0 to fusion::kMostParts, one of them above 0; for batches all of them are; for stages all are 1.
  std::vector<int> parts;

  bool operator==(const Division&) const = default;
  /// "slots 2:1", "batches 1:1", "stages 1:1"
  [[nodiscard]] std::string to_text() const;
};

/// A division and the seconds of a training step of the whole array.
struct RankPlan {
  Division division;
  double predicted_seconds = 0;
  double tried_seconds = 0;  ///< Measured over some steps; 0: it was not tried.
  bool operator==(const RankPlan&) const = default;
};

/// The chosen division, and the plans that it was chosen from; it is one of them.
struct RankPlans {
  Division chosen;
  std::vector<RankPlan> plans;
  int width = 0;  ///< Width of the arrays that were timed; 0: unknown, from before it was recorded.
  bool operator==(const RankPlans&) const = default;
};

/// The seconds of a training step that a rank takes by itself, while the others are at work as well.
struct RankTimes {
  /// Entry b - 1: seconds for b slots, with whole batches. At least one entry.
  std::vector<double> of_slots;
  /// By samples: seconds for all slots, with that many samples of a batch. The largest entry is that of a whole batch.
  std::map<std::int64_t, double> of_samples;
};

/// The sizes by which a batch is timed: whole, and where batches can be divided about a half and a quarter of it, as
/// near as `allowed` has them, if it has any.
[[nodiscard]] std::vector<std::int64_t> sizes_to_time(std::int64_t batch, bool batches,
                                                      const std::function<bool(std::int64_t)>& allowed);

/// The measurements that plans are made from.
struct RankQuestion {
  std::vector<RankTimes> ranks;  ///< Times of each rank, of equally many slots and samples.
  double exchange_seconds = 0;   ///< Seconds in which gradients of all slots are averaged over the ranks.
  bool batches = true;           ///< Whether batches can be divided.
};

/// The plans among which to choose, the one that is simplest first: slots by speed; if batches can be divided, these
/// evenly and by speed. What shares of a batch take is interpolated between the measured sizes, and the slowest rank
/// decides (HeteroG, CoNEXT 2020, section 3.2: replicas in proportion to power; slots need no exchange); where only the
/// whole batch was measured, shares are taken to be no faster. The division
/// of slots is the best there is, if more slots never take less time; that of batches too, up to a thousandth of the
/// batch.
[[nodiscard]] std::vector<RankPlan> rank_plans(const RankQuestion& question);

/// The one plan of stages. Nothing predicts it; where the model is cut follows from its graph.
[[nodiscard]] RankPlan plan_of_stages(int ranks);

/// The plan that `divide` asks for: of its kind the first plan that is at most 3 % slower than the fastest, since
/// measurements differ by as much. A plan that was not tried is judged by its prediction. Throws Error{kInternal} if
/// none is of that kind.
[[nodiscard]] const RankPlan& chosen_of(const std::vector<RankPlan>& plans, Divide divide);
/// Whether a study with that setting may have run by that division. Stages have to be asked for: `auto` has none.
[[nodiscard]] bool agrees(const Division& division, Divide divide);
/// Whether that many ranks with that setting would have chosen so: of what it asks for everything was tried.
[[nodiscard]] bool is_choice_of(const RankPlans& plans, int ranks, Divide divide);

/// Rank and place there of a slot.
struct SlotPlace {
  int rank = 0, slot = 0;
};
/// Deals slots to ranks by d'Hondt's rule: each goes to the rank whose part, divided by its slots with this one, is
/// largest. So slots keep their places whatever the array's width, and as many as `parts` sum up to are dealt as these
/// say. REQUIRES parts as Division has them.
[[nodiscard]] std::vector<SlotPlace> deal_slots(int slots, const std::vector<int>& parts);
/// The number of slots that each rank is dealt.
[[nodiscard]] std::vector<int> slots_of_ranks(int slots, const std::vector<int>& parts);

/// {"of": "slots", "parts": [2, 1]}
[[nodiscard]] nlohmann::ordered_json division_json(const Division& division);
/// Inverse of division_json(); nullopt where that is no division. Throws nlohmann::json::exception for another form.
[[nodiscard]] std::optional<Division> division_from(const nlohmann::ordered_json& json);

/// {"chosen": {"of": "slots", "parts": [2, 1]}, "width": 8, "plans": [{"of", "parts", "predicted_seconds",
/// "tried_seconds"}]}
[[nodiscard]] nlohmann::ordered_json to_json(const RankPlans& plans);
/// The inverse of to_json(); nullopt for anything else, and where `chosen` is no division.
[[nodiscard]] std::optional<RankPlans> rank_plans_from(const nlohmann::ordered_json& json);

}  // namespace hfta::engine
