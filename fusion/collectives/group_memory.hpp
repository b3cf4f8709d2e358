#pragma once
/// What the ranks of a group share: a file in memory, without a name, and what lies where in it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "fusion/collectives.hpp"

namespace hfta::fusion {

inline constexpr std::size_t kLine = 64;  ///< Bytes of a cache line.

enum class GroupCall : std::uint32_t { kAllReduceFloat, kAllReduceDouble, kBroadcast, kBarrier };

/// The state of a rank in calls that all ranks make.
struct alignas(kLine) RankState {
  std::atomic<std::uint32_t> written = 0;  ///< Rounds in which it has written its window,
  std::atomic<std::uint32_t> made = 0;     ///< and made its part of the result.
  // The call of its round; set before `written`.
  GroupCall call = GroupCall::kBarrier;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
};

/// Where a message from one rank to one next to it lies; one for all lanes whose numbers are equal modulo kLanes.
struct alignas(kLine) Mailbox {
  std::atomic<std::uint32_t> turn = 0;  ///< Who may use it and its window; mailboxes.cpp.
  std::uint64_t size = 0;               ///< Bytes of the whole message; written by the sender.
};

struct alignas(kLine) GroupHeader {
  std::uint64_t magic = 0;
  std::uint32_t ranks = 0;
  std::uint64_t window = 0;
  std::atomic<std::uint32_t> lost = 0;  ///< 0: the group is whole; kDiffer; else 1 + the rank that has ended.
  RankState states[kMostRanks];
};
inline constexpr std::uint32_t kDiffer = UINT32_MAX;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

/// The header, the mailboxes, a window for each rank, one for the result, and one for each mailbox. The system gives
/// memory to the pages that have been written alone.
class GroupMemory {
 public:
  /// Maps `bytes` of the file. Throws Error{kDevice} where the system refuses.
  GroupMemory(int descriptor, std::size_t bytes);
  ~GroupMemory();
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

  /// Writes the header and the mailboxes of a new group.
  void begin(int ranks, std::size_t window) const;

  [[nodiscard]] GroupHeader& header() const;
  /// The window of that rank; number `ranks` is the result's.
  [[nodiscard]] std::byte* window(std::size_t number) const;
  /// REQUIRES ranks whose numbers differ by one.
  [[nodiscard]] Mailbox& mailbox(int from, int to, int lane) const;
  /// The window of a mailbox.
  [[nodiscard]] std::byte* mail(int from, int to, int lane) const;

 private:
  [[nodiscard]] Mailbox* mailboxes() const;
  [[nodiscard]] std::byte* windows() const;

  std::size_t bytes_;
  void* memory_;
};

/// The file of a new group, with arguments as make_seats() has them.
[[nodiscard]] Descriptor make_group_memory(int ranks, std::size_t window);
/// The memory of a seat's group. Throws Error{kDevice} if the seat is of no group that has that rank.
[[nodiscard]] std::shared_ptr<const GroupMemory> memory_of_seat(const Descriptor& seat, int rank);

/// "ranks: `what`: " and why the system refuses that (errno).
[[nodiscard]] Error refused_to_ranks(const char* what);

}  // namespace hfta::fusion
