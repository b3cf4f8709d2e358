// Groups of threads: what the calls give, in pieces and at once, and what becomes of calls that differ.
#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <limits>

#include "as_ranks.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace hfta::fusion::testing {
namespace {

// Of a rank; sums of them depend on the order of additions.
template <typename T>
std::vector<T> numbers_of(int rank, std::size_t n) {
  CountedRandom random(11, Stream::kSimulation, static_cast<std::uint64_t>(rank));
  std::vector<T> numbers(n);
  for (T& number : numbers) number = static_cast<T>(random.normal() * (1 + rank * 1e3));
  return numbers;
}

template <typename T>
std::vector<T> sums_in_order(int ranks, std::size_t n) {
  std::vector<T> sums = numbers_of<T>(0, n);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<T> more = numbers_of<T>(r, n);
    for (std::size_t i = 0; i < n; ++i) sums[i] += more[i];
  }
  return sums;
}

void stagger(const Collectives& group, std::size_t n) {
  if ((n + static_cast<std::size_t>(group.rank())) % 3 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

// A window holds 256 float32, or 128 float64.
TEMPLATE_TEST_CASE("an all-reduce gives every rank the sums in order of rank", "", float, double) {
  const int ranks = GENERATE(1, 2, 3, 4);
  const std::size_t n = GENERATE(0, 1, 7, 64, 127, 128, 129, 256, 257, 5000);
  const std::vector<TestType> wanted = sums_in_order<TestType>(ranks, n);
  std::vector<std::vector<TestType>> found(static_cast<std::size_t>(ranks));
  const auto thrown = as_ranks(ranks, [&](Collectives& group) {
    want(group.ranks() == ranks, "as many ranks");
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<TestType>& own = found[static_cast<std::size_t>(group.rank())];
      own = numbers_of<TestType>(group.rank(), n);
      stagger(group, n);
      group.all_reduce(own);
    }
  });
  for (const std::string& error : thrown) CHECK(error.empty());
  for (const auto& own : found) CHECK(own == wanted);
}

TEST_CASE("a broadcast gives every rank the root's bytes") {
  const int ranks = GENERATE(1, 2, 4);
  const int root = GENERATE(0, 1, 3);
  if (root >= ranks) return;
  const std::size_t n = GENERATE(0, 1, 1023, 1024, 1025, 9000);
  const auto thrown = as_ranks(ranks, [&](Collectives& group) {
    std::vector<std::byte> bytes(n, static_cast<std::byte>(group.rank()));
    if (group.rank() == root) {
      for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7);
    }
    group.broadcast(bytes, root);
    for (std::size_t i = 0; i < n; ++i) want(bytes[i] == static_cast<std::byte>(i * 7), "the root's bytes");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("nobody leaves a barrier before all have come") {
  std::atomic<int> come = 0;
  const auto thrown = as_ranks(4, [&](Collectives& group) {
    for (int turn = 1; turn <= 20; ++turn) {
      stagger(group, static_cast<std::size_t>(turn));
      ++come;
      group.barrier();
      want(come >= 4 * turn, "all to have come");
      group.barrier();
    }
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("NaN and infinity of one rank are everybody's") {
  const auto thrown = as_ranks(3, [](Collectives& group) {
    std::vector<double> values = {1, 2, 3};
    if (group.rank() == 1) values[1] = std::numeric_limits<double>::quiet_NaN();
    if (group.rank() == 2) values[2] = std::numeric_limits<double>::infinity();
    group.all_reduce(values);
    want(values[0] == 3 && std::isnan(values[1]) && std::isinf(values[2]), "3, NaN and infinity");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("calls that differ are an error at every rank, and the group is lost") {
  using Call = std::function<void(Collectives&)>;
  const auto reduce = [](std::size_t n) -> Call {
    return [n](Collectives& group) {
      std::vector<float> values(n);
      group.all_reduce(values);
    };
  };
  const Call doubles = [](Collectives& group) {
    std::vector<double> values(4);
    group.all_reduce(values);
  };
  const Call barrier = [](Collectives& group) { group.barrier(); };
  const auto broadcast = [](int root) -> Call {
    return [root](Collectives& group) {
      std::vector<std::byte> bytes(4);
      group.broadcast(bytes, root);
    };
  };
  struct Case {
    Call first, others;
  };
  const std::vector<Case> cases = {{reduce(4), reduce(5)},       {reduce(4), doubles},      {reduce(0), barrier},
                                   {broadcast(0), broadcast(1)}, {broadcast(0), reduce(4)}, {barrier, reduce(3000)},
                                   {reduce(3000), reduce(2000)}};
  for (const Case& c : cases) {
    const auto thrown = as_ranks(3, [&](Collectives& group) {
      try {
        (group.rank() == 0 ? c.first : c.others)(group);
        want(false, "an error");
      } catch (const Error& error) {
        want(error.kind() == ErrorKind::kDevice, "an error of the device");
        group.barrier();
      }
    });
    for (const std::string& error : thrown) CHECK_THAT(error, Catch::StartsWith("ranks: their calls differ"));
  }
}

TEST_CASE("a rank that leaves is an error for those who wait") {
  const int leaver = GENERATE(0, 1, 2);
  const auto thrown = as_ranks(3, [&](Collectives& group) {
    group.barrier();
    if (group.rank() == leaver) return;
    std::vector<float> values(3000);
    group.all_reduce(values);
  });
  for (std::size_t r = 0; r < 3; ++r) {
    if (static_cast<int>(r) == leaver) {
      CHECK(thrown[r].empty());
    } else {
      CHECK(thrown[r] == fmt::format("ranks: rank {} of 3 has ended, wanted it to go on with the others", leaver));
    }
  }
}

TEST_CASE("a rank that has done its part may leave before the others have done theirs") {
  const auto thrown = as_ranks(4, [&](Collectives& group) {
    stagger(group, static_cast<std::size_t>(group.rank()));
    std::vector<float> values(100, 1);
    group.all_reduce(values);
    want(values[99] == 4, "the sum of four");
  });
  for (const std::string& error : thrown) CHECK(error.empty());
}

TEST_CASE("a seat is taken by its rank alone") {
  CHECK_THROWS_AS(make_seats(0), Error);
  CHECK_THROWS_AS(make_seats(kMostRanks + 1), Error);
  CHECK_THROWS_AS(make_seats(2, 100), Error);
  std::vector<Descriptor> seats = make_seats(2);
  CHECK_THROWS_AS(take_seat(std::move(seats[1]), 2), Error);
  CHECK_THROWS_AS(take_seat(std::move(seats[0]), -1), Error);
  CHECK_THROWS_AS(take_seat(Descriptor(), 0), Error);
  CHECK_THROWS_AS(take_seat(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), 0), Error);
}

TEST_CASE("a batch is divided into unequal parts, one after the other") {
  const std::vector<int> parts = {3, 0, 1, kMostParts, 2};
  const std::int64_t all = kMostParts + 6;
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{5}, all, 3 * all, std::int64_t{1} << 36}) {
    std::int64_t next = 0, before = 0;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const BatchShare share = share_of_batch(0, n, static_cast<int>(r), parts);
      before += parts[r];
      if (!share.counts) {
        CHECK(share.end - share.begin == 1);
        continue;
      }
      CHECK(share.begin == next);
      CHECK(share.first == next);
      next = share.end;
      const double exact = static_cast<double>(n) * static_cast<double>(before) / static_cast<double>(all);
      CHECK(std::abs(static_cast<double>(next) - exact) < 1);
    }
    CHECK(next == n);
  }
  CHECK_FALSE(share_of_batch(0, all, 1, parts).counts);
}

TEST_CASE("a batch is divided into equal parts, one after the other") {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (std::int64_t n = 1; n < 30; ++n) {
      std::int64_t next = 10, least = n, most = 0;
      for (int r = 0; r < ranks; ++r) {
        const BatchShare share = share_of_batch(10, 10 + n, r, std::vector<int>(static_cast<std::size_t>(ranks), 1));
        REQUIRE(share.begin < share.end);
        REQUIRE(share.first == share.begin - 10);
        if (!share.counts) {
          least = 0;
          continue;
        }
        REQUIRE(share.begin == next);
        next = share.end;
        least = std::min(least, share.end - share.begin);
        most = std::max(most, share.end - share.begin);
      }
      CHECK(next == 10 + n);
      CHECK(most - least <= 1);
    }
  }
}

}  // namespace hfta::fusion::testing
