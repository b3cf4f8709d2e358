#pragma once
/// Policies that choose accelerators for an array: the interface, and the table of them.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/allocation/model.hpp"

namespace hfta::engine {

/// An array at work.
struct Busy {
  DeviceSet set = 0;
  double seconds = 0;  ///< Seconds until it ends.
};

/// The state of the machine and the queue that a policy sees.
struct Situation {
  DeviceSet free = 0;
  std::span<const Busy> busy;
  std::span<const Request> queue;  ///< The array to be placed, then those that come after it, in that order.
};

/// Used by one thread at a time.
class Policy {
 public:
  virtual ~Policy() = default;
  /// As many free accelerators as the queue's first array needs. Deterministic. REQUIRES that there are as many, and
  /// that no request asks for more than kMostRequested or than the machine has.
  [[nodiscard]] virtual DeviceSet choose(const Situation& situation) = 0;
};

struct PolicyKind {
  std::string name;
  std::string sentence;
  std::unique_ptr<Policy> (*make)(const TimeModel& model);  ///< The model must outlive the policy.
};

/// All policies; the others are compared with the first.
[[nodiscard]] const std::vector<PolicyKind>& policies();

}  // namespace hfta::engine
