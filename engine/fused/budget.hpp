#pragma once
/// Memory as a budget: which ways to run fit into it, and how wide arrays are then.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/trainer.hpp"
#include "fusion/lowering.hpp"

namespace hfta::engine {

/// One way to run arrays, and the memory that it needs.
struct WayNeed {
  fusion::Lowering lowering;
  MemoryNeed need;
  int working = 1;  ///< The most slots that work at a time.

  [[nodiscard]] std::int64_t total(int width) const { return need.total(width, std::min(width, working)); }
  /// The most slots that fit into `room`, at most `widest`; 0: not even one does.
  [[nodiscard]] int most_slots(std::int64_t room, int widest) const;
  /// Whether its slots at work take less than the other's.
  [[nodiscard]] bool is_leaner_than(const WayNeed& other) const;
};

/// Ways that fit, for arrays of `width` slots.
struct Budgeted {
  int width = 0;               ///< 0: not even one slot fits, whichever way.
  bool plenty = true;          ///< The first way fits as many slots as can be at work: a leaner one gains nothing.
  std::vector<WayNeed> ways;   ///< Ways among which the fastest is to be chosen; not empty.
  std::vector<WayNeed> spare;  ///< Leaner ones, where there is plenty.
};

/// `ways`: in fusion::ways_to_run's order, not empty. Those that have the first one's executor and chunk are its
/// variants: they train the same bits. `room`: bytes. `widest`: the most slots that are wanted; `enough`: those that
/// keep all threads busy. More slots than that hardly train faster on a CPU, so that all variants that fit them are
/// let compete, and the array is as wide as the widest of these that all fit.
[[nodiscard]] Budgeted within(std::span<const WayNeed> ways, std::int64_t room, int widest, int enough);

/// The plan of the first way's variants: those that are among the budget's ways are open.
[[nodiscard]] MemoryPlan memory_plan(std::span<const WayNeed> ways, const Budgeted& budgeted, std::int64_t room,
                                     int widest);

/// A trial that does not fit into memory.
struct Misfit {
  std::span<const WayNeed> ways;         ///< Ways to run under its policy.
  std::span<const WayNeed> recomputing;  ///< Ways under policy recompute, if its own is another; may be empty.
  std::int64_t room = 0;                 ///< Bytes.
  std::int64_t samples = 0;              ///< Number of samples in a batch.
  std::int64_t smaller_batch = 0;        ///< Batch size that would fit; 0: none.
  int stages = 1;                        ///< Number of stages of its pipeline; it does not fit into one of them.
  int sharers = 1;                       ///< Number of devices that share the limit; `room` is the part of one.
};
/// "found 10.0 MiB, wanted at least 210.0 MiB: one trial takes ...", and what would fit.
[[nodiscard]] std::string misfit_text(const Misfit& misfit);

}  // namespace hfta::engine
