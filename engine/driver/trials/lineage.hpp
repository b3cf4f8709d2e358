#pragma once
/// The lineage of a trial's state: which trial trained each of its epochs.
///
/// A trial that continued from a copy of another trial has that trial's past. To make its state again from the start,
/// the state is trained as the other trial up to the copy, and as the trial itself from there. The other trial may
/// itself have continued from a copy.

#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

/// The trial that a slot trains as: its number keys the slot's random draws.
struct Identity {
  int number = 0;
  const trials::Params* params = nullptr;  ///< Points into the trials that were passed in.
  bool operator==(const Identity&) const = default;
};

/// The identity with which a state of the trial at index `draw` that has had `trained` epochs is trained further.
/// Throws Error{kStorage} if the trial that it is a copy of is not among `trials`.
[[nodiscard]] Identity identity_of(const std::vector<trials::Trial>& trials, int draw, int trained);

}  // namespace hfta::engine
