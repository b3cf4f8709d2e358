#pragma once
/// Fault-injection points: at each of these named places a test can kill the process or have a call fail.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace hfta {

/// Does nothing unless it was given orders. Thread-safe.
class Faults {
 public:
  Faults() = default;
  /// `orders`: "place=kill", "place@3=kill" (the third time it is reached), "place=fail", "place@3=memory"; several
  /// behind commas. kill: SIGKILL; stop: SIGSTOP, and on from there after SIGCONT; fail: Error{kDevice}; full:
  /// Error{kStorage}; memory: Error{kMemory}. Throws Error{kConfig} for anything else.
  explicit Faults(const std::string& orders);

  /// The process is at `place`; what was ordered for it happens.
  void reach(std::string_view place) const;

 private:
  struct Order {
    int at = 1;
    std::string action;
    std::unique_ptr<std::atomic<int>> reached = std::make_unique<std::atomic<int>>(0);
  };
  std::multimap<std::string, Order, std::less<>> orders_;
};

}  // namespace hfta
