// Processes as ranks, one of which is killed: wherever that happens, the others learn it soon.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <climits>
#include <csignal>
#include <span>

#include "base/error.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 100'000;  // of several pieces

enum class Stage { kBeforeItSits, kBeforeItCalls, kBetweenCalls, kInACall, kLeaves };

// What is not noticed is waited for without an end; a busy machine may be slow to notice.
constexpr std::chrono::seconds kSoon(60);

// Exit codes of a rank.
constexpr int kAllWell = 0, kOtherHasEnded = 10, kOtherError = 11;

void reduce_for_ever(Collectives& group) {
  std::vector<float> values(kMany, 1);
  for (;;) group.all_reduce(values);
}

int survive(Collectives& group, int dead) {
  try {
    reduce_for_ever(group);
  } catch (const Error& error) {
    const std::string wanted = "ranks: rank " + std::to_string(dead) + " of 3 has ended";
    return std::string(error.what()).starts_with(wanted) ? kOtherHasEnded : kOtherError;
  }
  return kAllWell;
}

// `told`: where a rank that is to be killed from outside writes that it has come to that.
int die(Descriptor seat, int rank, Stage stage, const Descriptor& told) {
  if (stage == Stage::kBeforeItSits) ::raise(SIGKILL);
  const std::unique_ptr<Collectives> group = take_seat(std::move(seat), rank);
  if (stage == Stage::kBeforeItCalls) ::raise(SIGKILL);
  std::vector<float> values(kMany, 1);
  for (int i = 0; i < 3; ++i) group->all_reduce(values);
  if (stage == Stage::kBetweenCalls) ::raise(SIGKILL);
  if (stage == Stage::kInACall) {
    if (::write(told.get(), "r", 1) != 1) return kOtherError;
    reduce_for_ever(*group);
  }
  return kAllWell;
}

constexpr int kRounds = 200;  // of messages, before one of the two dies

// Sums go there and back; throws where they are not what both have made of them.
void play(Collectives& group, int rounds) {
  const int other = 1 - group.rank();
  std::vector<int> numbers(5000);  // of several pieces
  const auto bytes = std::as_writable_bytes(std::span(numbers));
  for (int round = 0; round < rounds; ++round) {
    if (group.rank() == 0) {
      for (int& number : numbers) ++number;
      group.send(other, 70, bytes);
      group.receive(other, 6, bytes);
    } else {
      group.receive(other, 70, bytes);
      for (int& number : numbers) ++number;
      group.send(other, 6, bytes);
    }
    for (const int number : numbers) {
      if (number != 2 * round + 2) throw Error(ErrorKind::kInternal, "wanted the numbers that were sent");
    }
  }
}

int play_and_tell(Collectives& group, int rounds) {
  try {
    play(group, rounds);
  } catch (const Error& error) {
    const std::string wanted = "ranks: rank " + std::to_string(1 - group.rank()) + " of 2 has ended";
    return std::string(error.what()).starts_with(wanted) ? kOtherHasEnded : kOtherError;
  }
  return kAllWell;
}

}  // namespace

TEST_CASE("messages travel between processes until one is killed, which the other learns within seconds") {
  const int dead = GENERATE(0, 1);
  std::vector<Descriptor> seats = make_seats(2, 4096);
  std::vector<pid_t> children;
  for (int r = 0; r < 2; ++r) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Descriptor own = std::move(seats[static_cast<std::size_t>(r)]);
      seats.clear();
      const std::unique_ptr<Collectives> group = take_seat(std::move(own), r);
      const int code = play_and_tell(*group, r == dead ? kRounds : INT_MAX);
      if (code == kAllWell) ::raise(SIGKILL);
      ::_exit(code);
    }
    children.push_back(child);
  }
  seats.clear();
  int status = 0;
  REQUIRE(::waitpid(children[static_cast<std::size_t>(dead)], &status, 0) > 0);
  CHECK(WIFSIGNALED(status));  // not by an error before
  CHECK(WTERMSIG(status) == SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(::waitpid(children[static_cast<std::size_t>(1 - dead)], &status, 0) > 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kOtherHasEnded);
  CHECK(std::chrono::steady_clock::now() - start < kSoon);
}

TEST_CASE("a rank that dies at any stage is an error at every other rank within seconds") {
  const Stage stage =
      GENERATE(Stage::kBeforeItSits, Stage::kBeforeItCalls, Stage::kBetweenCalls, Stage::kInACall, Stage::kLeaves);
  const int dead = GENERATE(0, kRanks - 1);
  std::vector<Descriptor> seats = make_seats(kRanks, 4096);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Descriptor heard(ends[0]);
  Descriptor told(ends[1]);
  std::vector<pid_t> children;
  for (int r = 0; r < kRanks; ++r) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Descriptor own = std::move(seats[static_cast<std::size_t>(r)]);
      seats.clear();
      if (r == dead) ::_exit(die(std::move(own), r, stage, told));
      ::_exit(survive(*take_seat(std::move(own), r), dead));
    }
    children.push_back(child);
  }
  seats.clear();
  told = Descriptor();
  if (stage == Stage::kInACall) {
    char word = 0;
    CHECK(::read(heard.get(), &word, 1) == 1);
    ::usleep(50'000);  // into some call; which one is no matter
    ::kill(children[static_cast<std::size_t>(dead)], SIGKILL);
  }
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < kRanks; ++r) {
    int status = 0;
    REQUIRE(::waitpid(children[static_cast<std::size_t>(r)], &status, 0) > 0);
    if (r == dead) continue;
    INFO("rank " << r << ", dead " << dead << ", stage " << static_cast<int>(stage));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == kOtherHasEnded);
  }
  CHECK(std::chrono::steady_clock::now() - start < kSoon);
}

}  // namespace hfta::fusion::testing
