// Every call is one or more rounds. In a round each rank writes a piece of its numbers to its window of the shared
// memory. Once all have written, each rank makes its part of the result from all windows, adding in order of rank. Once
// all have made theirs, each reads the whole result. So a rank's window is free once all have made their parts, and the
// result's once all have written their next pieces: there is no need for two of either.
#include "fusion/collectives/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/pause.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

constexpr std::uint64_t kMagic = 0x686674615f726e6b;  // "hfta_rnk"
constexpr std::size_t kLine = 64;                     // of a cache
// At a counter, before a rank sleeps: some microseconds. Where calls go on beside a backward, whoever waits for long
// takes the core from it, and who yields it comes back only when the backward's time slice is over.
constexpr int kLooks = 200;
constexpr long kSleep = 50'000'000;  // nanoseconds between two looks at whether a rank is alive

enum class Call : std::uint32_t { kAllReduceFloat, kAllReduceDouble, kBroadcast, kBarrier };

struct alignas(kLine) RankState {
  std::atomic<std::uint32_t> written = 0;  // rounds in which it has written its window,
  std::atomic<std::uint32_t> made = 0;     // and made its part of the result
  // Of its round, before `written`.
  Call call = Call::kBarrier;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
};

struct alignas(kLine) Header {
  std::uint64_t magic = kMagic;
  std::uint32_t ranks = 0;
  std::uint64_t window = 0;
  std::atomic<std::uint32_t> lost = 0;  // 0: the group is whole; kDiffer; else 1 + the rank that has ended
  RankState states[kMostRanks];
};
constexpr std::uint32_t kDiffer = UINT32_MAX;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

// Windows, and one for the result.
std::size_t bytes_for(std::size_t ranks, std::size_t window) { return sizeof(Header) + (ranks + 1) * window; }

Error refused(const char* what) {
  return {ErrorKind::kDevice, fmt::format("ranks: {}: {}", what, std::strerror(errno))};
}

class Mapping {
 public:
  Mapping(int descriptor, std::size_t bytes) : bytes_(bytes) {
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory_ == MAP_FAILED) throw refused("cannot map their shared memory");
  }
  ~Mapping() { ::munmap(memory_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] Header& header() const { return *std::launder(static_cast<Header*>(memory_)); }
  [[nodiscard]] void* memory() const { return memory_; }
  /// Of that rank; number `ranks`: the result's.
  [[nodiscard]] std::byte* window(std::size_t number) const {
    return static_cast<std::byte*>(memory_) + sizeof(Header) + number * header().window;
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

// The same file, opened anew.
Descriptor reopened(const Descriptor& file) {
  Descriptor again(::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (again.get() < 0) throw refused("cannot open their shared memory");
  return again;
}

std::shared_ptr<const Mapping> mapped(const Descriptor& seat, int rank) {
  struct stat status = {};
  if (::fstat(seat.get(), &status) != 0) throw refused("cannot take a seat");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const Error none(ErrorKind::kDevice, fmt::format("ranks: descriptor {} is no seat of rank {}", seat.get(), rank));
  if (bytes < sizeof(Header)) throw none;
  auto mapping = std::make_shared<const Mapping>(seat.get(), bytes);
  const Header& header = mapping->header();
  const bool whole = header.magic == kMagic && header.ranks <= kMostRanks && header.window <= bytes &&
                     bytes == bytes_for(header.ranks, header.window);
  if (!whole || rank < 0 || rank >= static_cast<int>(header.ranks)) throw none;
  return mapping;
}

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

void wake_all(const std::atomic<std::uint32_t>& counter) {
  ::syscall(SYS_futex, &counter, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <typename T>
void add_windows(const Mapping& shared, std::size_t ranks, std::size_t begin, std::size_t end) {
  T* __restrict const result = reinterpret_cast<T*>(shared.window(ranks));
  std::copy(reinterpret_cast<const T*>(shared.window(0)) + begin, reinterpret_cast<const T*>(shared.window(0)) + end,
            result + begin);
  for (std::size_t r = 1; r < ranks; ++r) {
    const T* __restrict const more = reinterpret_cast<const T*>(shared.window(r));
    simd::multiversion([&] {
      for (std::size_t i = begin; i < end; ++i) result[i] += more[i];
    });
  }
}

std::string text_of(Call call, std::uint32_t root, std::uint64_t count) {
  switch (call) {
    case Call::kAllReduceFloat:
      return fmt::format("an all-reduce of {} float32", count);
    case Call::kAllReduceDouble:
      return fmt::format("an all-reduce of {} float64", count);
    case Call::kBroadcast:
      return fmt::format("a broadcast of {} bytes from rank {}", count, root);
    case Call::kBarrier:
      return "a barrier";
  }
  return "";
}

class SharedMemoryRank final : public Collectives {
 public:
  SharedMemoryRank(Descriptor seat, int rank, std::shared_ptr<const Mapping> shared)
      : seat_(std::move(seat)), rank_(rank), shared_(std::move(shared)) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return static_cast<int>(header().ranks); }
  void all_reduce(std::span<float> values) override { add(Call::kAllReduceFloat, values); }
  void all_reduce(std::span<double> values) override { add(Call::kAllReduceDouble, values); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (root < 0 || root >= ranks()) {
      throw Error(ErrorKind::kInternal, fmt::format("broadcast: found rank {}, wanted 0 to {}", root, ranks() - 1));
    }
    const auto from = static_cast<std::uint32_t>(root);
    in_pieces(bytes.size(), 1, [&](std::size_t begin, std::size_t n) {
      std::byte* const own = bytes.data() + begin;
      // Windows are whole until all ranks have made their results.
      const auto make = [&](std::size_t) {
        if (rank_ != root && n > 0) std::memcpy(own, shared_->window(from), n);
      };
      run_round({Call::kBroadcast, from, bytes.size(), own, rank_ == root ? n : 0}, make, 0);
    });
  }

  void barrier() override {
    run_round(
        {Call::kBarrier, 0, 0, nullptr, 0}, [](std::size_t) {}, 0);
  }

 private:
  struct Piece {
    Call call;
    std::uint32_t root;
    std::uint64_t count;  // of the whole call
    std::byte* bytes;
    std::size_t written;  // of them, to the window
  };

  [[nodiscard]] Header& header() const { return shared_->header(); }
  [[nodiscard]] RankState& state(int rank) const { return header().states[rank]; }

  // visit(first element, number of them), at least once.
  template <typename Visit>
  void in_pieces(std::size_t count, std::size_t size, const Visit& visit) const {
    const std::size_t most = header().window / size;
    std::size_t begin = 0;
    do {
      const std::size_t n = std::min(most, count - begin);
      visit(begin, n);
      begin += n;
    } while (begin < count);
  }

  template <typename T>
  void add(Call call, std::span<T> values) {
    in_pieces(values.size(), sizeof(T), [&](std::size_t begin, std::size_t n) {
      auto* const bytes = reinterpret_cast<std::byte*>(values.data() + begin);
      const auto make = [&](std::size_t ranks) {
        const auto place = [&](std::size_t rank) {
          return std::min(n, (n * rank / ranks + kLine - 1) / kLine * kLine);
        };
        const auto own = static_cast<std::size_t>(rank_);
        add_windows<T>(*shared_, ranks, place(own), place(own + 1));
      };
      run_round({call, 0, values.size(), bytes, n * sizeof(T)}, make, n * sizeof(T));
    });
  }

  // `result`: bytes that are read from the result's window at the end.
  template <typename Make>
  void run_round(const Piece& piece, const Make& make, std::size_t result) {
    check_whole();
    const std::uint32_t round = ++round_;
    RankState& own = state(rank_);
    if (piece.written > 0) std::memcpy(shared_->window(static_cast<std::size_t>(rank_)), piece.bytes, piece.written);
    own.call = piece.call;
    own.root = piece.root;
    own.count = piece.count;
    publish(own.written, round);
    for (int r = 0; r < ranks(); ++r) wait_for(state(r).written, round, r);
    check_alike();
    make(header().ranks);
    publish(own.made, round);
    for (int r = 0; r < ranks(); ++r) wait_for(state(r).made, round, r);
    if (result > 0) std::memcpy(piece.bytes, shared_->window(header().ranks), result);
  }

  static void publish(std::atomic<std::uint32_t>& counter, std::uint32_t round) {
    counter.store(round, std::memory_order_release);
    wake_all(counter);
  }

  void wait_for(const std::atomic<std::uint32_t>& counter, std::uint32_t round, int rank) {
    const auto seen = [&](std::uint32_t value) { return static_cast<std::int32_t>(value - round) >= 0; };
    for (int look = 0; look < kLooks; ++look) {
      if (seen(counter.load(std::memory_order_acquire))) return;
      pause_in_loop();
    }
    for (;;) {
      const std::uint32_t value = counter.load(std::memory_order_acquire);
      if (seen(value)) return;
      check_whole();
      sleep_while(counter, value);
      // Who has ended may have done its part of this round before.
      if (!is_held(seat_, rank) && !seen(counter.load(std::memory_order_acquire))) {
        lose(1 + static_cast<std::uint32_t>(rank));
      }
    }
  }

  // The first reason stays.
  [[noreturn]] void lose(std::uint32_t why) {
    std::uint32_t whole = 0;
    header().lost.compare_exchange_strong(whole, why);
    check_whole();
    throw Error(ErrorKind::kInternal, "ranks: a group that was lost is whole");
  }

  void check_whole() const {
    const std::uint32_t lost = header().lost.load(std::memory_order_acquire);
    if (lost == 0) return;
    if (lost == kDiffer) {
      throw Error(ErrorKind::kDevice, "ranks: their calls differ, wanted the same call at every rank" + difference_);
    }
    throw Error(ErrorKind::kDevice, fmt::format("ranks: rank {} of {} has ended, wanted it to go on with the others",
                                                lost - 1, header().ranks));
  }

  void check_alike() {
    const RankState& own = state(rank_);
    for (int r = 0; r < ranks(); ++r) {
      const RankState& other = state(r);
      if (other.call == own.call && other.count == own.count && other.root == own.root) continue;
      difference_ = fmt::format(": rank {} makes {}, rank {} makes {}", rank_, text_of(own.call, own.root, own.count),
                                r, text_of(other.call, other.root, other.count));
      lose(kDiffer);
    }
  }

  Descriptor seat_;
  int rank_;
  std::shared_ptr<const Mapping> shared_;
  std::uint32_t round_ = 0;
  std::string difference_;  // that this rank saw
};

}  // namespace

std::vector<Descriptor> make_seats(int ranks, std::size_t window) {
  if (ranks < 1 || ranks > kMostRanks || window == 0 || window % kLine != 0) {
    throw Error(ErrorKind::kInternal, fmt::format("ranks: found {} with windows of {} bytes, wanted 1 to {}, and a "
                                                  "multiple of {} bytes",
                                                  ranks, window, kMostRanks, kLine));
  }
  const Descriptor memory(::memfd_create("hfta-ranks", MFD_CLOEXEC));
  if (memory.get() < 0) throw refused("cannot make their shared memory");
  const std::size_t bytes = bytes_for(static_cast<std::size_t>(ranks), window);
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) throw refused("cannot make their shared memory");
  const Mapping mapping(memory.get(), bytes);
  auto* const header = new (mapping.memory()) Header();
  header->ranks = static_cast<std::uint32_t>(ranks);
  header->window = window;
  std::vector<Descriptor> seats;
  for (int r = 0; r < ranks; ++r) {
    const Descriptor& seat = seats.emplace_back(reopened(memory));
    struct flock lock = lock_of(r);
    if (::fcntl(seat.get(), F_OFD_SETLK, &lock) != 0) throw refused("cannot make a seat");
  }
  return seats;
}

std::unique_ptr<Collectives> take_seat(Descriptor seat, int rank) {
  std::shared_ptr<const Mapping> shared = mapped(seat, rank);
  return std::make_unique<SharedMemoryRank>(std::move(seat), rank, std::move(shared));
}

std::vector<std::unique_ptr<Collectives>> ranks_in_process(int ranks, std::size_t window) {
  std::vector<Descriptor> seats = make_seats(ranks, window);
  const std::shared_ptr<const Mapping> shared =
      mapped(reopened(seats.front()), 0);  // it keeps the file that it maps open
  std::vector<std::unique_ptr<Collectives>> all;
  all.reserve(seats.size());
  for (int r = 0; r < ranks; ++r) {
    all.push_back(std::make_unique<SharedMemoryRank>(std::move(seats[static_cast<std::size_t>(r)]), r, shared));
  }
  return all;
}

}  // namespace hfta::fusion
