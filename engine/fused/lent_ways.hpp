#pragma once
/// Chooses how an array runs with threads that idle devices lend it.

#include <cstdint>
#include <map>
#include <vector>

#include "engine/fused/budget.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {

/// Has copies of all that it reads, so that a device's own thread can ask it while the trainer is used by another.
class LentWays {
 public:
  /// `question`: about the array, with its own threads. `own`: how it runs on these. `data`: bytes of the device that
  /// all slots' samples take. `room`: bytes that the array may hold.
  LentWays(const fusion::WayQuestion& question, fusion::Lowering own, std::int64_t data, std::int64_t room);
  LentWays(const LentWays&) = delete;
  LentWays& operator=(const LentWays&) = delete;

  /// Whether other numbers of threads train the same bits. If not, with() must not be asked.
  [[nodiscard]] bool any() const;
  [[nodiscard]] const fusion::Lowering& own() const { return own_; }
  /// The lowering for `lent` more threads: of those that fit, the one that trains most slots of an array of `width` at
  /// a time; own() where none fits. The first time that a number is asked for, the graph is compiled.
  [[nodiscard]] fusion::Lowering with(int lent, int width);

 private:
  [[nodiscard]] std::vector<WayNeed> needs(int lent) const;

  fusion::Graph graph_;
  fusion::Recipe recipe_;
  fusion::WayQuestion question_;
  fusion::Lowering own_;
  std::int64_t data_, room_;
  std::map<int, std::vector<WayNeed>> by_lent_;
};

}  // namespace hfta::engine
