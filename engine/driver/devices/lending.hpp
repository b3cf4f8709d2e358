#pragma once
/// Threads of devices that have nothing to do, lent to arrays that still train: arithmetic on what is left to do.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hfta::engine {

/// A device as lending sees it.
struct LendingDevice {
  int threads = 0;             ///< See DeviceFacts.
  std::vector<int> cpus = {};  ///< See DeviceFacts: threads are lent among devices with equal ones.
  bool idle = false;           ///< It has nothing to do, and lends all of its threads.
  double seconds = 0;          ///< Seconds that its array still has to train on its own threads; 0: it borrows none.
  double cost = 0;             ///< Seconds that the array takes to change its number of threads.
  int lent = 0;                ///< Threads of others that it has now.
};

/// The threads of others that each device is to train with. Devices that have some keep them as long as there
/// are as many, since a change costs them time. Each further thread goes where the work would end last, if what may be
/// gained there is clearly more than the cost of a change; ties to the first device. A thread has one borrower.
[[nodiscard]] std::vector<int> lent_threads(const std::vector<LendingDevice>& devices);

/// The speed of epochs with lent threads. A step of few and small kernels is no faster by more threads, or even slower:
/// that shows within two epochs.
class LentEpochs {
 public:
  /// An epoch of the device with lent threads took that long; with its own ones it takes `alone`.
  void add(std::size_t device, const std::string& partition, double seconds, double alone);
  /// Whether the partition's arrays on that device may borrow: no measurement says that they gain nothing.
  [[nodiscard]] bool help(std::size_t device, const std::string& partition) const;

 private:
  struct Seen {
    int epochs = 0;
    double best = 0;  ///< The least time of one of them, as a part of the time alone.
  };
  std::map<std::pair<std::size_t, std::string>, Seen> seen_;
};

}  // namespace hfta::engine
