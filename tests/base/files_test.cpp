#include "base/files.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

using hfta::Error;
using hfta::ErrorKind;
using hfta::SystemFiles;
namespace fs = std::filesystem;

namespace {

// A folder of its own for each test, gone at its end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "hfta-files-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const fs::path& path) {
  const auto bytes = SystemFiles().read(path, 1 << 24);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The failure of `action`, which must be of kind kStorage and name `path`.
template <typename Action>
std::string failure(const fs::path& path, Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kStorage);
    INFO(error.what());
    CHECK(std::string(error.what()).find(path.string()) == 0);
    return error.what();
  }
  FAIL("no error for " << path);
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Files may not grow beyond `bytes` while it lives.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("What is written is read back, and a second write replaces the first") {
  const Scratch scratch;
  SystemFiles files;
  const fs::path path = scratch / "a/b/c.bin";  // folders are made
  CHECK_FALSE(files.exists(path));
  for (const std::string& text :
       {std::string("first"), std::string(), std::string("a\0b", 3), std::string(3'000'000, 'x')}) {
    files.write_atomically(path, bytes_of(text));
    CHECK(files.exists(path));
    CHECK(text_of(path) == text);
    CHECK(files.list(scratch / "a/b") == std::vector<std::string>{"c.bin"});  // no temporary is left
  }
  files.remove(path);
  CHECK_FALSE(files.exists(path));
  files.remove(path);  // absent is no error
}

TEST_CASE("A path without a folder is written to the current one") {
  const Scratch scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  SystemFiles().write_atomically("bare.txt", bytes_of("x"));
  fs::current_path(before);
  CHECK(text_of(scratch / "bare.txt") == "x");
}

TEST_CASE("list gives sorted names of files, and nothing for an absent folder") {
  const Scratch scratch;
  SystemFiles files;
  for (const char* name : {"b", "a", "c/inner"}) files.write_atomically(scratch / name, bytes_of("x"));
  CHECK(files.list(scratch.path()) == std::vector<std::string>{"a", "b"});  // "c" is a folder
  CHECK(files.list(scratch / "absent").empty());
}

TEST_CASE("Failures name the path and the reason") {
  const Scratch scratch;
  SystemFiles files;
  files.write_atomically(scratch / "file", bytes_of("12345"));
  fs::create_directories(scratch / "folder/inner");

  const fs::path absent = scratch / "absent";
  CHECK(has(failure(absent, [&] { (void)files.read(absent, 10); }), "cannot open: No such file or directory"));
  const fs::path file = scratch / "file";
  CHECK(has(failure(file, [&] { (void)files.read(file, 4); }), "larger than 4 bytes"));
  CHECK(files.read(file, 5).size() == 5);
  const fs::path folder = scratch / "folder";
  CHECK(has(failure(folder, [&] { (void)files.read(folder, 10); }), "cannot read: Is a directory"));
  CHECK(has(failure(folder, [&] { files.write_atomically(folder, bytes_of("x")); }), "cannot rename to: "));
  CHECK(has(failure(file, [&] { files.write_atomically(file / "below", bytes_of("x")); }), "Not a directory"));
  CHECK(has(failure(file, [&] { files.write_atomically(file / "far/below", bytes_of("x")); }),
            "found a file, wanted a folder"));
  CHECK(has(failure(folder, [&] { files.remove(folder); }), "cannot remove: Is a directory"));
  CHECK(has(failure(file, [&] { (void)files.list(file); }), "Not a directory"));
  CHECK(files.list(scratch.path()) == std::vector<std::string>{"file"});  // and nothing was left behind
}

TEST_CASE("A write that fails half way leaves the old bytes and no temporary") {
  const Scratch scratch;
  SystemFiles files;
  const fs::path path = scratch / "state";
  files.write_atomically(path, bytes_of("old"));
  {
    const SizeLimit limit(4096);
    CHECK(has(failure(path, [&] { files.write_atomically(path, bytes_of(std::string(100'000, 'n'))); }),
              "cannot write: File too large"));
  }
  CHECK(text_of(path) == "old");
  CHECK(files.list(scratch.path()) == std::vector<std::string>{"state"});
}

TEST_CASE("A temporary file is a new one, whatever was put where it might be") {
  const Scratch scratch;
  const fs::path path = scratch / "out.json", victim = scratch / "victim";
  SystemFiles().write_atomically(victim, bytes_of("precious"));
  for (int i = 0; i < 200; ++i) {  // what names were once made of
    fs::create_symlink(victim, path.string() + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(i));
  }
  SystemFiles().write_atomically(path, bytes_of("result"));
  CHECK(text_of(victim) == "precious");
  CHECK(text_of(path) == "result");
  CHECK_FALSE(fs::is_symlink(path));
}

TEST_CASE("A name as long as names can be is written") {
  const Scratch scratch;
  const fs::path path = scratch / std::string(254, 'n');
  SystemFiles().write_atomically(path, bytes_of("x"));
  CHECK(text_of(path) == "x");
}

TEST_CASE("Below a root, nothing but regular files in real folders counts") {
  const Scratch scratch;
  const fs::path root = scratch / "root", elsewhere = scratch / "elsewhere", own = root / "own";
  for (const fs::path& folder : {own, elsewhere}) fs::create_directories(folder);
  const hfta::Faults none;
  SystemFiles files(none, root), anywhere;
  anywhere.write_atomically(elsewhere / "file", bytes_of("theirs"));
  files.write_atomically(own / "file", bytes_of("ours"));
  fs::create_symlink(elsewhere / "file", own / "link");
  fs::create_directory(own / "folder");
  fs::create_directory(own / "folder" / "full");
  REQUIRE(::mkfifo((own / "pipe").c_str(), 0600) == 0);
  fs::create_directory_symlink(elsewhere, root / "linked");

  CHECK(files.list(own) == std::vector<std::string>{"file"});
  CHECK(files.exists(own / "file"));
  for (const auto& [name, found] : {std::pair("link", "a symbolic link"), {"folder", "a folder"}, {"pipe", "a pipe"}}) {
    INFO(name);
    const fs::path path = own / name;
    CHECK_FALSE(files.exists(path));
    CHECK(has(failure(path, [&] { (void)files.read(path, 10); }), std::string("found ") + found));
    files.write_atomically(path, bytes_of("written"));  // takes the name, and touches nothing else
    CHECK(text_of(path) == "written");
  }
  CHECK(text_of(elsewhere / "file") == "theirs");
  // Through a linked folder nothing is read, made or removed.
  const fs::path through = root / "linked" / "file";
  const std::string wanted = "found a symbolic link, wanted a folder";
  CHECK(has(failure(root / "linked", [&] { (void)files.read(through, 10); }), wanted));
  CHECK(has(failure(root / "linked", [&] { (void)files.exists(through); }), wanted));
  CHECK(has(failure(root / "linked", [&] { (void)files.list(root / "linked"); }), wanted));
  CHECK(has(failure(root / "linked", [&] { files.remove(through); }), wanted));
  CHECK(has(failure(root / "linked", [&] { files.write_atomically(through, bytes_of("x")); }), wanted));
  CHECK(text_of(elsewhere / "file") == "theirs");
  CHECK(anywhere.list(elsewhere) == std::vector<std::string>{"file"});
  // Nor is there a way out by name.
  for (const fs::path& path : {root / ".." / "elsewhere" / "file", elsewhere / "file"}) {
    CHECK_THROWS_AS(files.read(path, 10), Error);
    CHECK_THROWS_AS(files.remove(path), Error);
  }
  CHECK(text_of(elsewhere / "file") == "theirs");
}

TEST_CASE("Where anyone may write, what another user put is not taken") {
  if (::geteuid() != 0) return;  // only root can give files away
  const Scratch scratch;
  const hfta::Faults none;
  SystemFiles files(none, scratch.path());
  constexpr uid_t kOther = 12345;
  files.write_atomically(scratch / "open/theirs", bytes_of("x"));
  files.write_atomically(scratch / "open/below/file", bytes_of("x"));
  REQUIRE(::chown((scratch / "open/theirs").c_str(), kOther, kOther) == 0);
  REQUIRE(::chown((scratch / "open/below").c_str(), kOther, kOther) == 0);
  CHECK(files.read(scratch / "open/theirs", 10).size() == 1);  // who may write there is trusted by its owner
  CHECK(files.read(scratch / "open/below/file", 10).size() == 1);
  fs::permissions(scratch / "open", fs::perms::all | fs::perms::sticky_bit);
  for (const fs::path& path : {scratch / "open/theirs", scratch / "open/below"}) {
    CHECK(has(failure(path, [&] { (void)files.read(path == scratch / "open/below" ? path / "file" : path, 10); }),
              "belongs to user 12345"));
  }
  REQUIRE(::chown((scratch / "open").c_str(), kOther, kOther) == 0);
  CHECK(files.read(scratch / "open/theirs", 10).size() == 1);  // the folder's owner could do anything there
}

TEST_CASE("Files and folders get the permissions that the umask leaves") {
  const Scratch scratch;
  const mode_t before = ::umask(077);
  SystemFiles().write_atomically(scratch / "below/file", bytes_of("x"));
  ::umask(before);
  CHECK((fs::status(scratch / "below/file").permissions() & fs::perms::mask) == fs::perms(0600));
  CHECK((fs::status(scratch / "below").permissions() & fs::perms::mask) == fs::perms(0700));
}

TEST_CASE("Threads that write one file leave one of their versions, whole") {
  const Scratch scratch;
  const fs::path path = scratch / "shared";
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&path, i] {
      const std::string text(50'000, static_cast<char>('a' + i));
      for (int n = 0; n < 5; ++n) SystemFiles().write_atomically(path, bytes_of(text));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string text = text_of(path);
  CHECK(text == std::string(50'000, text.at(0)));
  CHECK(SystemFiles().list(scratch.path()) == std::vector<std::string>{"shared"});
}
