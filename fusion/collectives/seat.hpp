#pragma once
/// A rank's seat in a group: what the ranks share, and who of them is still there.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/folder.hpp"
#include "fusion/collectives/group_memory.hpp"

namespace hfta::fusion {

/// Any number of threads may use it at once.
class Seat {
 public:
  Seat(Descriptor seat, int rank, std::shared_ptr<const GroupMemory> memory);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(memory_->header().ranks); }
  [[nodiscard]] const GroupMemory& memory() const { return *memory_; }

  /// Throws Error{kDevice} if the group is lost.
  void check_whole() const;
  /// Marks the group as lost: the ranks' calls differ. Throws as check_whole(). `difference`: what this rank
  /// saw; later errors of this rank say it too.
  [[noreturn]] void lose(const std::string& difference);

  /// Whether a counter's value is as wanted.
  using Seen = std::function<bool(std::uint32_t value)>;
  /// Returns when the value is as wanted: `rank` or another thread makes it so. Throws as check_whole() if the group is
  /// lost meanwhile; it is where `rank` has ended.
  void wait_for(const std::atomic<std::uint32_t>& counter, int rank, const Seen& seen) const;

 private:
  void lose_for(std::uint32_t why) const;

  Descriptor seat_;
  int rank_;
  std::shared_ptr<const GroupMemory> memory_;
  mutable std::mutex mutex_;
  std::string difference_;
};

/// Sets the counter and wakes all that wait for it.
void publish(std::atomic<std::uint32_t>& counter, std::uint32_t value);

/// The file's seats, in order of rank.
[[nodiscard]] std::vector<Descriptor> seats_of(const Descriptor& file, int ranks);
/// Opens the file anew, as a descriptor that holds no seat.
[[nodiscard]] Descriptor opened_anew(const Descriptor& file);

}  // namespace hfta::fusion
