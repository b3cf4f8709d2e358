// Messages between ranks that are threads: what arrives, on many lanes at once, and what becomes of those that cannot.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "as_ranks.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace hfta::fusion::testing {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kWindow = 4096;   // of a rank,
constexpr std::size_t kMail = kWindow;  // and of a lane

// What rank `from` sends on a lane as its message of that number.
Bytes message(int from, int lane, int number, std::size_t size) {
  CountedRandom random(23, Stream::kSimulation, static_cast<std::uint64_t>(lane),
                       static_cast<std::uint64_t>(from * 1000 + number));
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

void send(Collectives& group, int to, int lane, int number, std::size_t size) {
  group.send(to, lane, message(group.rank(), lane, number, size));
}

void receive(Collectives& group, int from, int lane, int number, std::size_t size) {
  Bytes bytes(size, std::byte{0xee});
  group.receive(from, lane, bytes);
  want(bytes == message(from, lane, number, size),
       fmt::format("message {} of lane {} from rank {}", number, lane, from));
}

void check_none(const std::vector<std::string>& thrown) {
  for (const std::string& error : thrown) CHECK(error.empty());
}

// Runs them at once; throws the first error.
void at_once(const std::vector<std::function<void()>>& works) {
  std::vector<std::exception_ptr> errors(works.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < works.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        works[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

// Of that message, up to some windows.
std::size_t size_of(int lane, int number) {
  CountedRandom random(29, Stream::kSimulation, static_cast<std::uint64_t>(lane), static_cast<std::uint64_t>(number));
  return static_cast<std::size_t>(random.below(4) == 0 ? random.below(5 * kMail) : random.below(200));
}

}  // namespace

TEST_CASE("messages arrive as they were sent, in order") {
  const std::size_t size = GENERATE(0, 1, 64, kMail - 1, kMail, kMail + 1, 7 * kMail / 2);
  const int from = GENERATE(0, 1, 2);
  const int to = from == 1 ? GENERATE(0, 2) : 1;
  const int lane = GENERATE(0, 63, 64, 1'000'000'007);
  check_none(as_ranks(ranks_in_process(3, kWindow), [&](Collectives& group) {
    for (int number = 0; number < 5; ++number) {
      if (group.rank() == from) send(group, to, lane, number, size);
      if (group.rank() == to) receive(group, from, lane, number, size);
    }
  }));
}

TEST_CASE("messages of different sizes follow one another on a lane") {
  const std::vector<std::size_t> sizes = {3 * kMail, 0, 1, 2 * kMail + 7, 0, 64, kMail};
  check_none(as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const int number = static_cast<int>(i);
      if (group.rank() == 0) send(group, 1, 2, number, sizes[i]);
      if (group.rank() == 1) receive(group, 0, 2, number, sizes[i]);
    }
  }));
}

TEST_CASE("the smallest window holds a long message's pieces") {
  check_none(as_ranks(ranks_in_process(2, 64), [&](Collectives& group) {
    if (group.rank() == 0) send(group, 1, 0, 0, 1000);
    if (group.rank() == 1) receive(group, 0, 0, 0, 1000);
  }));
}

TEST_CASE("a short message is sent before it is received, on each lane and both ways") {
  check_none(as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
    const int other = 1 - group.rank();
    for (int lane = 0; lane < kLanes; ++lane) send(group, other, lane, 0, kMail);
    for (int lane = kLanes - 1; lane >= 0; --lane) receive(group, other, lane, 0, kMail);
  }));
}

TEST_CASE("a message is sent at once where nobody has to be waited for") {
  check_none(as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
    constexpr int kLane = 3, kSameMailbox = kLane + kLanes;
    const auto at_once = [&](int lane, int number, std::size_t size) {
      return group.send_at_once(1, lane, message(0, lane, number, size));
    };
    if (group.rank() == 0) {
      want(!at_once(kLane, 0, kMail + 1), "a long message to wait");
      want(at_once(kLane, 0, kMail), "a short one to be sent");
      want(!at_once(kLane, 1, 1), "another one to wait behind it");
      want(!at_once(kSameMailbox, 0, 1), "one to wait on a lane with the same place");
      want(at_once(kLane + 1, 0, 0), "one to be sent on another lane");
    }
    group.barrier();
    if (group.rank() == 1) receive(group, 0, kLane, 0, kMail);
    if (group.rank() == 1) receive(group, 0, kLane + 1, 0, 0);
    group.barrier();
    if (group.rank() == 0) want(at_once(kSameMailbox, 0, 1), "one to be sent when that place is empty");
    if (group.rank() == 1) receive(group, 0, kSameMailbox, 0, 1);
  }));
}

// 150 lanes: two or three of them in each place.
TEST_CASE("many lanes are used at once, beside calls of all ranks") {
  constexpr int kMany = 150, kMessages = 6;
  const int ranks = GENERATE(2, 3);
  check_none(as_ranks(ranks_in_process(ranks, kWindow), [&](Collectives& group) {
    std::vector<std::function<void()>> works;
    for (const int other : {group.rank() - 1, group.rank() + 1}) {
      if (other < 0 || other >= ranks) continue;
      for (int lane = 0; lane < kMany; ++lane) {
        works.emplace_back([&group, other, lane] {
          for (int n = 0; n < kMessages; ++n) send(group, other, lane, n, size_of(lane, n));
        });
        works.emplace_back([&group, other, lane] {
          for (int n = 0; n < kMessages; ++n) receive(group, other, lane, n, size_of(lane, n));
        });
      }
    }
    works.emplace_back([&group, ranks] {
      for (int turn = 0; turn < 30; ++turn) {
        std::vector<float> values(3000, 1);
        group.all_reduce(values);
        want(values[2999] == static_cast<float>(ranks), "the sum of ones");
      }
    });
    at_once(works);
  }));
}

TEST_CASE("messages travel through all ranks, and back") {
  constexpr int kRanks = 5;
  check_none(as_ranks(ranks_in_process(kRanks, kWindow), [&](Collectives& group) {
    Bytes bytes = message(0, 0, 0, 3000);
    const int rank = group.rank();
    if (rank > 0) group.receive(rank - 1, 1, bytes);
    bytes[static_cast<std::size_t>(rank)] = std::byte{1};
    if (rank + 1 < kRanks) {
      group.send(rank + 1, 1, bytes);
      group.receive(rank + 1, 1, bytes);
    }
    if (rank > 0) group.send(rank - 1, 1, bytes);
    for (std::size_t r = 0; r < kRanks; ++r) want(bytes[r] == std::byte{1}, "what each rank has written");
  }));
}

TEST_CASE("a message of another size is an error at both ends, and the group is lost") {
  struct Case {
    std::size_t sent, received;
  };
  for (const Case& c : {Case{12, 16}, Case{16, 12}, Case{0, 1}, Case{1, 0}, Case{3 * kMail, 2 * kMail}}) {
    const auto thrown = as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
      Bytes bytes(group.rank() == 0 ? c.sent : c.received);
      try {
        if (group.rank() == 0) {
          group.send(1, 3, bytes);
          group.send(1, 3, bytes);
          group.barrier();
        } else {
          group.receive(0, 3, bytes);
        }
        want(false, "an error");
      } catch (const Error& error) {
        want(error.kind() == ErrorKind::kDevice, "an error of the device");
      }
      group.send(1 - group.rank(), 5, bytes);
    });
    CHECK_THAT(thrown[0], Catch::StartsWith("ranks: their calls differ"));
    CHECK_THAT(thrown[1], Catch::StartsWith("ranks: their calls differ"));
    CHECK_THAT(thrown[1],
               Catch::EndsWith(fmt::format("rank 0 sends {} bytes on lane 3, rank 1 receives {}", c.sent, c.received)));
  }
}

TEST_CASE("a rank that leaves is an error for those who wait for its messages, within a second") {
  using Work = std::function<void(Collectives&)>;
  const std::vector<Work> cases = {[](Collectives& group) { receive(group, 1, 0, 0, 10); },
                                   [](Collectives& group) {  // the lane is full
                                     send(group, 1, 0, 0, 10);
                                     send(group, 1, 0, 1, 10);
                                   },
                                   [](Collectives& group) { send(group, 1, 0, 0, 3 * kMail); },
                                   [](Collectives& group) {  // on several lanes, two of which share their place
                                     std::vector<std::function<void()>> works;
                                     for (const int lane : {0, 64, 5}) {
                                       works.emplace_back([&group, lane] { send(group, 1, lane, 0, 3 * kMail); });
                                       works.emplace_back([&group, lane] { receive(group, 1, lane, 0, 3 * kMail); });
                                     }
                                     at_once(works);
                                   }};
  for (const Work& work : cases) {
    std::chrono::steady_clock::time_point left;
    const auto thrown = as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
      if (group.rank() == 0) return work(group);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      left = std::chrono::steady_clock::now();
    });
    CHECK(thrown[0] == "ranks: rank 1 of 2 has ended, wanted it to go on with the others");
    CHECK(std::chrono::steady_clock::now() - left < std::chrono::seconds(5));  // a machine may be busy
  }
}

TEST_CASE("lanes that no message has used take no memory") {
  const std::vector<Descriptor> seats = make_seats(kMostRanks);
  const std::unique_ptr<Collectives> end = take_seat(Descriptor(::dup(seats.front().get())), 0);
  for (int lane = 0; lane < kLanes; lane += 16) send(*end, 1, lane, 0, 100);
  struct stat status = {};
  REQUIRE(::fstat(seats.front().get(), &status) == 0);
  CHECK(status.st_size > 1 << 30);
  CHECK(status.st_blocks * 512 < 16 << 20);  // whatever the size of pages
}

TEST_CASE("a rank may leave when it has sent") {
  check_none(as_ranks(ranks_in_process(2, kWindow), [&](Collectives& group) {
    if (group.rank() == 0) return send(group, 1, 0, 0, kMail);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    receive(group, 0, 0, 0, kMail);
  }));
}

TEST_CASE("messages go to ranks next to one, on lanes from 0") {
  struct Case {
    int other, lane;
  };
  const auto thrown = as_ranks(ranks_in_process(4, kWindow), [](Collectives& group) {
    if (group.rank() != 1 && group.rank() != 3) return;
    const std::vector<Case> cases = group.rank() == 1 ? std::vector<Case>{{3, 0}, {1, 0}, {-1, 0}, {5, 0}, {0, -1}}
                                                      : std::vector<Case>{{4, 0}, {1, 0}, {0, 0}, {2, -64}};
    for (const Case& c : cases) {
      for (const bool sends : {true, false}) {
        Bytes bytes(1);
        try {
          if (sends) group.send(c.other, c.lane, bytes);
          if (!sends) group.receive(c.other, c.lane, bytes);
          want(false, "an error");
        } catch (const Error& error) {
          want(error.kind() == ErrorKind::kInternal, "an internal error");
          want(std::string(error.what()).starts_with(sends ? "send: found rank" : "receive: found rank"), error.what());
        }
      }
    }
  });
  check_none(thrown);
}

}  // namespace hfta::fusion::testing
