#include "engine/driver/devices/thread_changes.hpp"

namespace hfta::engine {
namespace {

// The share of the time that changes of threads may take: lenders may have work again soon, and again and again.
constexpr double kChangeShare = 1 / 50.;

}  // namespace

void ThreadChanges::add(std::size_t device, double seconds) {
  if (seconds > 0) devices_[device].cost = seconds;
  devices_[device].sum += seconds;
}

bool ThreadChanges::may_borrow(std::size_t device, int lent, double elapsed) const {
  const Device& d = devices_[device];
  return d.borrows && (lent != 0 || d.sum <= kChangeShare * elapsed);
}

}  // namespace hfta::engine
