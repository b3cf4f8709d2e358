#pragma once
/// Arrays that several ranks train, and how they look to the driver: as one.

#include <memory>
#include <vector>

#include "engine/division/division.hpp"
#include "engine/parallel/ranks.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// Every rank has all slots, and all ranks fill, empty and run the array. Weights are the same bits
/// everywhere, so that states are taken from rank 0, which alone evaluates. `own`: rank 0's; the members have opened
/// theirs.
[[nodiscard]] std::unique_ptr<TrainerArray> make_array_of_batches(Ranks& ranks, std::unique_ptr<TrainerArray> own);

/// Every rank has a stage of all slots: some layers, and the weights of these. All ranks fill, empty and run the array,
/// and take part in states and metrics, which rank 0 then has.
[[nodiscard]] std::unique_ptr<TrainerArray> make_array_of_stages(Ranks& ranks, std::unique_ptr<TrainerArray> own);

/// Every rank has some slots, as deal_slots says, in an array of its own with at least one. An epoch is reported when
/// all slots have ended it: if one rank has when a pause is asked for, the others end theirs as well.
[[nodiscard]] std::unique_ptr<TrainerArray> make_array_of_slots(Ranks& ranks, std::unique_ptr<TrainerArray> own,
                                                                int width, std::vector<int> parts);

/// The widths of the ranks' arrays in an array of slots.
[[nodiscard]] std::vector<int> widths_of_ranks(int width, const std::vector<int>& parts);

}  // namespace hfta::engine
