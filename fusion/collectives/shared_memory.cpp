// Every call is one or more rounds. In a round each rank writes a piece of its numbers to its window of the shared
// memory. Once all have written, each rank makes its part of the result from all windows, adding in order of rank. Once
// all have made theirs, each reads the whole result. So a rank's window is free once all have made their parts, and the
// result's once all have written their next pieces: there is no need for two of either.
#include "fusion/collectives/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "fusion/collectives/mailboxes.hpp"
#include "fusion/collectives/seat.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
void add_windows(const GroupMemory& shared, std::size_t ranks, std::size_t begin, std::size_t end) {
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

std::string text_of(GroupCall call, std::uint32_t root, std::uint64_t count) {
  switch (call) {
    case GroupCall::kAllReduceFloat:
      return fmt::format("an all-reduce of {} float32", count);
    case GroupCall::kAllReduceDouble:
      return fmt::format("an all-reduce of {} float64", count);
    case GroupCall::kBroadcast:
      return fmt::format("a broadcast of {} bytes from rank {}", count, root);
    case GroupCall::kBarrier:
      return "a barrier";
  }
  return "";
}

class SharedMemoryRank final : public Collectives {
 public:
  SharedMemoryRank(Descriptor seat, int rank, std::shared_ptr<const GroupMemory> shared)
      : seat_(std::move(seat), rank, std::move(shared)), rank_(rank), shared_(seat_.memory()) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return seat_.ranks(); }
  void all_reduce(std::span<float> values) override { add(GroupCall::kAllReduceFloat, values); }
  void all_reduce(std::span<double> values) override { add(GroupCall::kAllReduceDouble, values); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (root < 0 || root >= ranks()) {
      throw Error(ErrorKind::kInternal, fmt::format("broadcast: found rank {}, wanted 0 to {}", root, ranks() - 1));
    }
    const auto from = static_cast<std::uint32_t>(root);
    in_pieces(bytes.size(), 1, [&](std::size_t begin, std::size_t n) {
      std::byte* const own = bytes.data() + begin;
      // Windows are whole until all ranks have made their results.
      const auto make = [&](std::size_t) {
        if (rank_ != root && n > 0) std::memcpy(own, shared_.window(from), n);
      };
      run_round({GroupCall::kBroadcast, from, bytes.size(), own, rank_ == root ? n : 0}, make, 0);
    });
  }

  void barrier() override {
    run_round(
        {GroupCall::kBarrier, 0, 0, nullptr, 0}, [](std::size_t) {}, 0);
  }

  void send(int to, int lane, std::span<const std::byte> bytes) override { send_mail(seat_, to, lane, bytes); }
  [[nodiscard]] bool send_at_once(int to, int lane, std::span<const std::byte> bytes) override {
    return send_mail_at_once(seat_, to, lane, bytes);
  }
  void await(int from, int lane) override { await_mail(seat_, from, lane); }
  void receive(int from, int lane, std::span<std::byte> bytes) override { receive_mail(seat_, from, lane, bytes); }

 private:
  struct Piece {
    GroupCall call;
    std::uint32_t root;
    std::uint64_t count;  // elements of the whole call
    std::byte* bytes;
    std::size_t written;  // number of these bytes that go to the window
  };

  [[nodiscard]] GroupHeader& header() const { return shared_.header(); }
  [[nodiscard]] RankState& state(int rank) const { return header().states[rank]; }

  // Calls visit(first element, number of elements), at least once.
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
  void add(GroupCall call, std::span<T> values) {
    in_pieces(values.size(), sizeof(T), [&](std::size_t begin, std::size_t n) {
      auto* const bytes = reinterpret_cast<std::byte*>(values.data() + begin);
      const auto make = [&](std::size_t ranks) {
        const auto place = [&](std::size_t rank) {
          return std::min(n, (n * rank / ranks + kLine - 1) / kLine * kLine);
        };
        const auto own = static_cast<std::size_t>(rank_);
        add_windows<T>(shared_, ranks, place(own), place(own + 1));
      };
      run_round({call, 0, values.size(), bytes, n * sizeof(T)}, make, n * sizeof(T));
    });
  }

  // `result`: bytes that are read from the result's window at the end.
  template <typename Make>
  void run_round(const Piece& piece, const Make& make, std::size_t result) {
    seat_.check_whole();
    const std::uint32_t round = ++round_;
    RankState& own = state(rank_);
    if (piece.written > 0) std::memcpy(shared_.window(static_cast<std::size_t>(rank_)), piece.bytes, piece.written);
    own.call = piece.call;
    own.root = piece.root;
    own.count = piece.count;
    publish(own.written, round);
    for (int r = 0; r < ranks(); ++r) wait_for(state(r).written, round, r);
    check_alike();
    make(header().ranks);
    publish(own.made, round);
    for (int r = 0; r < ranks(); ++r) wait_for(state(r).made, round, r);
    if (result > 0) std::memcpy(piece.bytes, shared_.window(header().ranks), result);
  }

  void wait_for(const std::atomic<std::uint32_t>& counter, std::uint32_t round, int rank) const {
    seat_.wait_for(counter, rank,
                   [round](std::uint32_t value) { return static_cast<std::int32_t>(value - round) >= 0; });
  }

  void check_alike() {
    const RankState& own = state(rank_);
    for (int r = 0; r < ranks(); ++r) {
      const RankState& other = state(r);
      if (other.call == own.call && other.count == own.count && other.root == own.root) continue;
      seat_.lose(fmt::format("rank {} makes {}, rank {} makes {}", rank_, text_of(own.call, own.root, own.count), r,
                             text_of(other.call, other.root, other.count)));
    }
  }

  Seat seat_;
  int rank_;
  const GroupMemory& shared_;
  std::uint32_t round_ = 0;
};

}  // namespace

std::vector<Descriptor> make_seats(int ranks, std::size_t window) {
  return seats_of(make_group_memory(ranks, window), ranks);
}

std::unique_ptr<Collectives> take_seat(Descriptor seat, int rank) {
  std::shared_ptr<const GroupMemory> shared = memory_of_seat(seat, rank);
  return std::make_unique<SharedMemoryRank>(std::move(seat), rank, std::move(shared));
}

std::vector<std::unique_ptr<Collectives>> ranks_in_process(int ranks, std::size_t window) {
  std::vector<Descriptor> seats = make_seats(ranks, window);
  // A mapping keeps the file that it maps open, so that file is one that holds no seat.
  const std::shared_ptr<const GroupMemory> shared = memory_of_seat(opened_anew(seats.front()), 0);
  std::vector<std::unique_ptr<Collectives>> all;
  all.reserve(seats.size());
  for (int r = 0; r < ranks; ++r) {
    all.push_back(std::make_unique<SharedMemoryRank>(std::move(seats[static_cast<std::size_t>(r)]), r, shared));
  }
  return all;
}

}  // namespace hfta::fusion
