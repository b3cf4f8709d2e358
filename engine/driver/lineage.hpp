#pragma once
/// Who trained what a trial's state is made of.
///
/// A trial that went on from a copy of another has that one's past: made again from the start, its state is trained as
/// the other trial was, up to the copy, and as itself from there. The other may have been a copy itself.

#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

/// Whom a slot trains: the number keys its random draws.
struct Identity {
  int number = 0;
  const trials::Params* params = nullptr;  ///< In the trials that were asked about.
  bool operator==(const Identity&) const = default;
};

/// As whom a state of the trial at place `draw` that has had `trained` epochs is trained on. Throws Error{kStorage} if
/// the trial that it is a copy of is not among `trials`.
[[nodiscard]] Identity identity_of(const std::vector<trials::Trial>& trials, int draw, int trained);

}  // namespace hfta::engine
