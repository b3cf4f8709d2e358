#include "base/temporary_folder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;
using hfta::TemporaryFolder;

TEST_CASE("A temporary folder goes with its object, and a killed process's with the next of its name") {
  const std::string name = "hfta-test-sweep-" + std::to_string(::getpid());
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const TemporaryFolder folder(name);
    std::ofstream(folder.path() / "file") << "x";
    const std::string path = folder.path().string();
    (void)!::write(pipe[1], path.data(), path.size());
    ::raise(SIGSTOP);
    ::raise(SIGKILL);
  }
  std::string left(4096, '\0');
  const ssize_t size = ::read(pipe[0], left.data(), left.size());
  REQUIRE(size > 0);
  left.resize(static_cast<std::size_t>(size));
  for (const int number : pipe) ::close(number);
  REQUIRE(fs::exists(left));
  fs::path gone;
  {
    const TemporaryFolder other(name), another(name), of_another_name(name + "-x");
    CHECK(fs::exists(left));  // its process lives, stopped as it is
    CHECK(fs::exists(other.path()));
    CHECK(fs::exists(another.path()));
    gone = other.path();
  }
  CHECK_FALSE(fs::exists(gone));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(fs::exists(left));
  const TemporaryFolder next(name);
  CHECK_FALSE(fs::exists(left));
}

TEST_CASE("Temporary folders of one name that are made at once do not take each other for a dead process's") {
  const TemporaryFolder place("hfta-test-sweep-" + std::to_string(::getpid()));
  std::atomic<int> lost = 0;
  std::vector<std::thread> makers;
  for (int i = 0; i < 8; ++i) {
    makers.emplace_back([&] {
      for (int k = 0; k < 3000; ++k) {
        const TemporaryFolder folder("one", place.path());
        if (!fs::exists(folder.path())) ++lost;
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  CHECK(lost == 0);
}
