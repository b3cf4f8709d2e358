#pragma once
/// What it costs arrays to go on with more or fewer threads, and which of them may borrow some.

#include <cstddef>
#include <vector>

namespace hfta::engine {

/// Devices are identified by their index. Times are in seconds. Not thread-safe.
class ThreadChanges {
 public:
  explicit ThreadChanges(std::size_t devices) : devices_(devices) {}

  /// The array's threads changed, which took that long.
  void add(std::size_t device, double seconds);
  /// Memory ran out while the device borrowed: it borrows no more.
  void forbid(std::size_t device) { devices_[device].borrows = false; }
  /// What the last change took; 0: there was none yet.
  [[nodiscard]] double cost(std::size_t device) const { return devices_[device].cost; }
  /// Whether the device may borrow threads, `elapsed` seconds after the run began. `lent`: threads that it has of
  /// others; one that has some may keep them.
  [[nodiscard]] bool may_borrow(std::size_t device, int lent, double elapsed) const;

 private:
  struct Device {
    double cost = 0;      ///< Seconds of the last change.
    double sum = 0;       ///< Seconds of all changes of this run.
    bool borrows = true;  ///< False: memory ran out while it borrowed.
  };
  std::vector<Device> devices_;
};

}  // namespace hfta::engine
