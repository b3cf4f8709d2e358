// What SystemFiles does when the system's calls fail, are interrupted, or do half of what was asked.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/temporary_folder.hpp"
#include "system_calls.hpp"

namespace hfta::testing {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const fs::path& path) {
  const auto bytes = SystemFiles().read(path, 1 << 24);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("Whichever call of a write fails, the old bytes or the new are there, and nothing besides") {
  const int error = GENERATE(EIO, ENOSPC, EDQUOT, EMFILE, ENFILE, EACCES, EROFS, ENOMEM);
  const bool for_good = GENERATE(false, true);
  const bool rooted = GENERATE(true, false);
  CAPTURE(std::strerror(error), for_good, rooted);
  const Faults none;
  const std::string old_text = "old", new_text(5000, 'n');
  int failures = 0;
  for (bool whole = false; !whole;) {
    REQUIRE(failures < 100);
    const TemporaryFolder folder("hfta-test");
    const fs::path path = folder.path() / "a/b/state";
    SystemFiles files(none, rooted ? folder.path() : fs::path());
    files.write_atomically(path, bytes_of(old_text));
    std::string message, failed;
    ErrorKind kind = ErrorKind::kStorage;
    {
      CallFaults faults;
      faults.fail_at = failures + 1;
      faults.error = error;
      faults.for_good = for_good;
      try {
        files.write_atomically(path, bytes_of(new_text));
      } catch (const Error& thrown) {
        message = thrown.what();
        kind = thrown.kind();
      }
      failed = faults.failed;
      // A second fsync might report success for bytes that the kernel has dropped.
      if (failed == "fsync") CHECK(std::count(faults.calls.begin() + failures + 1, faults.calls.end(), "fsync") == 0);
    }
    CAPTURE(failures, failed, message);
    whole = failed.empty();
    CHECK(message.empty() == whole);
    const std::string found = text_of(path);
    CHECK((found == old_text || found == new_text));
    if (whole) CHECK(found == new_text);
    CHECK(files.list(path.parent_path()) == std::vector<std::string>{"state"});
    if (!whole) {
      ++failures;
      CHECK(kind == ErrorKind::kStorage);
      CHECK(message.find(std::strerror(error)) != std::string::npos);
      CHECK(message.rfind(folder.path().string(), 0) == 0);
      if (failed == "write")
        CHECK((message.find("need 5000 bytes") != std::string::npos) == (error == ENOSPC || error == EDQUOT));
      if (failed == "write" && error == ENOSPC) CHECK(message.find("need 5000 bytes, have ") != std::string::npos);
    }
  }
  CHECK(failures >= 5);
}

TEST_CASE("Interrupted calls and short reads and writes lose nothing") {
  const TemporaryFolder folder("hfta-test");
  const fs::path path = folder.path() / "a/state";
  const Faults none;
  SystemFiles files(none, folder.path());
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i);
  CallFaults faults;
  faults.interrupt = GENERATE(false, true);
  faults.most = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096});
  CAPTURE(faults.interrupt, faults.most);
  files.write_atomically(path, bytes_of(text));
  CHECK(text_of(path) == text);
  CHECK(files.list(path.parent_path()) == std::vector<std::string>{"state"});
  if (faults.most == 1) CHECK(std::count(faults.calls.begin(), faults.calls.end(), "write") >= 10000);
}

TEST_CASE("Whichever call of a read fails, it says so") {
  const TemporaryFolder folder("hfta-test");
  const fs::path path = folder.path() / "a/state";
  const Faults none;
  SystemFiles files(none, folder.path());
  files.write_atomically(path, bytes_of("text"));
  const int error = GENERATE(EIO, EMFILE, EACCES);
  int failures = 0;
  for (bool whole = false; !whole;) {
    REQUIRE(failures < 100);
    CallFaults faults;
    faults.fail_at = failures + 1;
    faults.error = error;
    whole = true;
    try {
      const std::size_t read = files.read(path, 10).size();
      CHECK(read == 4);
    } catch (const Error& thrown) {
      whole = false;
      ++failures;
      CHECK(std::string(thrown.what()).find(std::strerror(error)) != std::string::npos);
    }
  }
  CHECK(failures >= 3);
}

}  // namespace hfta::testing
