#pragma once
/// Ranks that work together on one array: what they tell each other. One implementation for processes of one machine
/// (fusion/collectives/shared_memory.hpp); NCCL would be another one. Without torch.

#include <cstddef>
#include <cstdint>
#include <span>

namespace hfta::fusion {

/// The most ranks of a group.
inline constexpr int kMostRanks = 64;
/// Lanes of messages that have a place of their own.
inline constexpr int kLanes = 64;

/// One rank's end of a group of ranks, numbered from 0. All ranks make the same calls in the same order, with equally
/// many elements; each call blocks until the whole group has made it. The calls of a rank come one at a time, from any
/// thread; send() and receive() alone are otherwise. Results are the same bits at every rank, and do not depend on who
/// came when.
///
/// Throws Error{kDevice} at every rank if one of them has ended, or if their calls differ; who waits learns it within a
/// second. A group in which that has happened is lost: every later call throws the same.
class Collectives {
 public:
  Collectives() = default;
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// Whether a call mostly waits for a network: other work then goes on beside it, in another thread.
  [[nodiscard]] virtual bool waits_for_network() const { return false; }

  /// Each element becomes the sum of the ranks' elements at that place, added in order of rank.
  virtual void all_reduce(std::span<float> values) = 0;
  virtual void all_reduce(std::span<double> values) = 0;
  /// Everybody's bytes become those of rank `root`.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Returns when all ranks have come here.
  virtual void barrier() = 0;

  /// Messages between ranks whose numbers differ by one, beside all other calls: any threads may call these at once,
  /// but on each lane one at a time each way. The n-th receive() from a rank on a lane gets the bytes of that rank's
  /// n-th send() to this one on it. `lane`: any number from 0.
  ///
  /// send() returns once the bytes are copied: those of a short message maybe before receive() is called, those of a
  /// long one while it is. It waits while a message lies on the lane. Lanes whose numbers are equal modulo kLanes hold
  /// one message between them: nobody may wait for one there while they leave one that was sent before it.
  ///
  /// Throws Error{kInternal} for another rank or lane. Error{kDevice} as above, where the two sizes differ too; a
  /// send() that had returned before learns that from its rank's next call.
  virtual void send(int to, int lane, std::span<const std::byte> bytes) = 0;
  virtual void receive(int from, int lane, std::span<std::byte> bytes) = 0;
  /// Waits until there is something to receive().
  virtual void await(int from, int lane) = 0;
  /// send(), if that waits for nobody: the message is short, and none lies on the lane. Returns whether it was sent.
  [[nodiscard]] virtual bool send_at_once(int to, int lane, std::span<const std::byte> bytes) = 0;
};

/// A rank's part of a batch.
struct BatchShare {
  std::int64_t begin = 0, end = 0;  ///< Samples, in the numbers that the batch's are given in; never empty.
  std::int64_t first = 0;           ///< `begin`, counted from the batch's first sample.
  /// False where there are fewer samples than ranks: this rank runs another's sample, so that it runs at all, and what
  /// comes of it has no weight.
  bool counts = true;
};

/// Divides the samples [begin, end), at least one, among ranks, in order of rank, as the parts have it: of n samples
/// those before rank r are floor(n * (parts of the ranks before it) / (all parts)). REQUIRES a part for each rank, of 0
/// to kMostParts, and one above 0. A rank whose part is 0, or too small for so few samples, has none that counts.
[[nodiscard]] BatchShare share_of_batch(std::int64_t begin, std::int64_t end, int rank, std::span<const int> parts);
inline constexpr int kMostParts = 1 << 20;

}  // namespace hfta::fusion
