// Processes as ranks, one of which is killed: wherever that happens, the others learn it soon.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>

#include "base/error.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 100'000;  // of several pieces

enum class Stage { kBeforeItSits, kBeforeItCalls, kBetweenCalls, kInACall, kLeaves };

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

int die(Descriptor seat, int rank, Stage stage) {
  if (stage == Stage::kBeforeItSits) ::raise(SIGKILL);
  const std::unique_ptr<Collectives> group = take_seat(std::move(seat), rank);
  if (stage == Stage::kBeforeItCalls) ::raise(SIGKILL);
  std::vector<float> values(kMany, 1);
  for (int i = 0; i < 3; ++i) group->all_reduce(values);
  if (stage == Stage::kBetweenCalls) ::raise(SIGKILL);
  if (stage == Stage::kInACall) reduce_for_ever(*group);  // killed from outside
  return kAllWell;
}

}  // namespace

TEST_CASE("a rank that dies at any stage is an error at every other rank within seconds") {
  const Stage stage =
      GENERATE(Stage::kBeforeItSits, Stage::kBeforeItCalls, Stage::kBetweenCalls, Stage::kInACall, Stage::kLeaves);
  const int dead = GENERATE(0, kRanks - 1);
  std::vector<Descriptor> seats = make_seats(kRanks, 4096);
  std::vector<pid_t> children;
  for (int r = 0; r < kRanks; ++r) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Descriptor own = std::move(seats[static_cast<std::size_t>(r)]);
      seats.clear();
      if (r == dead) ::_exit(die(std::move(own), r, stage));
      ::_exit(survive(*take_seat(std::move(own), r), dead));
    }
    children.push_back(child);
  }
  seats.clear();
  if (stage == Stage::kInACall) {
    ::usleep(50'000);
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
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

}  // namespace hfta::fusion::testing
