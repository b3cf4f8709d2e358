#pragma once
/// How the slots of one partition are divided among unequal devices: arithmetic on tables of times.

#include <optional>
#include <vector>

namespace hfta::engine {

/// A device's table: entry b is the time of an epoch of b slots, in any unit that the tables share. Entry 0 is not
/// read: a device without slots takes no time. The device has room for size - 1 slots; it cannot have as many slots as
/// an entry that is infinite or NaN stands for. The times need not grow with b: an array of 8 may be faster than one
/// of 7.
using SlotTimes = std::vector<double>;

/// The numbers of slots b_d, one per device, with the smallest possible max_d t_d(b_d) among all with sum b_d =
/// `slots`. Of several such divisions, the one that gives the first device most, then the second, and so on. nullopt if
/// the devices have no room for that many. Exact. For D devices and tables of n entries it takes O(D n (slots / 64)
/// log(D n)) steps. REQUIRES slots >= 0. (The idea, for replicas of one model: HeteroG, CoNEXT 2020. Slots are
/// independent, so that no traffic follows.)
[[nodiscard]] std::optional<std::vector<int>> split_slots(int slots, const std::vector<SlotTimes>& devices);

/// max_d t_d(b_d) of a division. REQUIRES that each number is within its device's table.
[[nodiscard]] double longest(const std::vector<int>& division, const std::vector<SlotTimes>& devices);

}  // namespace hfta::engine
