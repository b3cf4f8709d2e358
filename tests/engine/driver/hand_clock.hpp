#pragma once
/// A clock that a test sets by hand.

#include <atomic>

#include "base/clock.hpp"

namespace hfta::engine::testing {

class HandClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return {}; }
  [[nodiscard]] double seconds() const override { return now; }

  std::atomic<double> now{0};
};

}  // namespace hfta::engine::testing
