#include "fusion/collectives/seat.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

#include "base/pause.hpp"

namespace hfta::fusion {
namespace {

// Looks at a counter before a rank sleeps: some microseconds. Where calls go on beside a backward, a rank that looks
// for long takes the core from it, and one that yields comes back only when the backward's time slice is over.
constexpr int kLooks = 200;
constexpr long kSleep = 50'000'000;  // nanoseconds between two looks at whether a rank is alive

// Locks belong to an open file, not to a process or thread: the system lets one go when the last descriptor of that
// file is closed, however its owner ended.
struct flock lock_of(int rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

bool is_held(const Descriptor& seat, int rank) {
  struct flock lock = lock_of(rank);
  return ::fcntl(seat.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void sleep_while(const std::atomic<std::uint32_t>& counter, std::uint32_t value) {
  const struct timespec most = {0, kSleep};
  ::syscall(SYS_futex, &counter, FUTEX_WAIT, value, &most, nullptr, 0);
}

}  // namespace

Seat::Seat(Descriptor seat, int rank, std::shared_ptr<const GroupMemory> memory)
    : seat_(std::move(seat)), rank_(rank), memory_(std::move(memory)) {}

void Seat::check_whole() const {
  const std::uint32_t lost = memory_->header().lost.load(std::memory_order_acquire);
  if (lost == 0) return;
  if (lost == kDiffer) {
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::kDevice, "ranks: their calls differ, wanted the same call at every rank" + difference_);
  }
  throw Error(ErrorKind::kDevice,
              fmt::format("ranks: rank {} of {} has ended, wanted it to go on with the others", lost - 1, ranks()));
}

void Seat::lose(const std::string& difference) {
  {
    const std::lock_guard lock(mutex_);
    if (difference_.empty()) difference_ = ": " + difference;
  }
  lose_for(kDiffer);
  check_whole();
  throw Error(ErrorKind::kInternal, "ranks: a group that was lost is whole");
}

// The first reason stays.
void Seat::lose_for(std::uint32_t why) const {
  std::uint32_t whole = 0;
  memory_->header().lost.compare_exchange_strong(whole, why);
}

void Seat::wait_for(const std::atomic<std::uint32_t>& counter, int rank, const Seen& seen) const {
  for (int look = 0; look < kLooks; ++look) {
    if (seen(counter.load(std::memory_order_acquire))) return;
    pause_in_loop();
  }
  for (;;) {
    const std::uint32_t value = counter.load(std::memory_order_acquire);
    if (seen(value)) return;
    check_whole();
    sleep_while(counter, value);
    // A rank that has ended may have done its part before.
    if (!is_held(seat_, rank) && !seen(counter.load(std::memory_order_acquire))) {
      lose_for(1 + static_cast<std::uint32_t>(rank));
    }
  }
}

void publish(std::atomic<std::uint32_t>& counter, std::uint32_t value) {
  counter.store(value, std::memory_order_release);
  ::syscall(SYS_futex, &counter, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::vector<Descriptor> seats_of(const Descriptor& file, int ranks) {
  std::vector<Descriptor> seats;
  for (int r = 0; r < ranks; ++r) {
    const Descriptor& seat = seats.emplace_back(opened_anew(file));
    struct flock lock = lock_of(r);
    if (::fcntl(seat.get(), F_OFD_SETLK, &lock) != 0) throw refused_to_ranks("cannot make a seat");
  }
  return seats;
}

Descriptor opened_anew(const Descriptor& file) {
  Descriptor again(::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (again.get() < 0) throw refused_to_ranks("cannot open their shared memory");
  return again;
}

}  // namespace hfta::fusion
