#include "base/threads.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace hfta {
namespace {

// Of addresses.
std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

// What a process exits with that has room for some threads, but not for all. The limit cannot be taken back.
int exit_code_without_room() {
  constexpr int kThrown = 7, kMany = 100000;
  const std::uint64_t most = mapped_bytes() + (std::uint64_t{1} << 29);  // stacks are 8 MiB
  const rlimit little{most, most};
  if (::setrlimit(RLIMIT_AS, &little) != 0) return 1;
  std::atomic<bool> stopped{false};
  std::atomic<int> served{0};
  try {
    (void)start_threads(
        kMany,
        [&](int) {
          stopped.wait(false);
          ++served;
        },
        [&] {
          stopped = true;
          stopped.notify_all();
        });
  } catch (const Error& error) {
    const bool joined = std::string(error.what()).find(fmt::format("could start {}, wanted 100000", served.load())) !=
                        std::string::npos;
    return error.kind() == ErrorKind::kDevice && served > 0 && joined ? kThrown : 2;
  }
  return 3;
}

}  // namespace

TEST_CASE("threads all run, each with its own number") {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads = start_threads(
      5, [&](int i) { sum += i + 1; }, [] {});
  CHECK(threads.size() == 5);
  for (std::thread& thread : threads) thread.join();
  CHECK(sum == 15);
  CHECK(start_threads(
            0, [](int) {}, [] {})
            .empty());
}

TEST_CASE("where not all threads can start, those that have are joined") {
  if (mapped_bytes() > std::uint64_t{1} << 36) return;  // a sanitizer's, which ends where it gets no memory
  const pid_t child = ::fork();
  if (child == 0) ::_exit(exit_code_without_room());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

}  // namespace hfta
