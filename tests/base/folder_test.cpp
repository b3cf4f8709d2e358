#include "base/folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"

using hfta::Folder;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("entries names everything in a folder and says what it is, following no link") {
  const hfta::TemporaryFolder scratch("hfta-folder-test", fs::temp_directory_path());
  const fs::path path = scratch.path();
  write(path / "b", "");
  fs::create_directory(path / "a");
  fs::create_symlink(path / "a", path / "d");
  fs::create_symlink("nowhere", path / "e");
  REQUIRE(::mkfifo((path / "c").c_str(), 0600) == 0);
  std::vector<std::string> found;
  for (const Folder::Entry& entry : Folder(path).entries()) {
    found.push_back(entry.name + ": " + entry.kind + (entry.is_file ? " (file)" : entry.is_folder ? " (folder)" : ""));
  }
  CHECK(found == std::vector<std::string>{"a: a folder (folder)", "b: a file (file)", "c: a pipe", "d: a symbolic link",
                                          "e: a symbolic link"});
}

TEST_CASE("move takes a file, a link or a folder elsewhere, and never onto what is there") {
  const hfta::TemporaryFolder scratch("hfta-folder-test", fs::temp_directory_path());
  const fs::path from = scratch.path() / "from", to = scratch.path() / "to";
  fs::create_directories(from / "folder");
  fs::create_directory(to);
  write(from / "folder" / "inside", "inside");
  fs::create_symlink("nowhere", from / "link");
  const Folder source(from), target(to);
  for (const char* text : {"first", "second", "third"}) {
    write(from / "file", text);
    const std::string name = source.move("file", target);
    CHECK(text_of(to / name) == text);
    CHECK_FALSE(fs::exists(from / "file"));
  }
  CHECK(text_of(to / "file") == "first");
  CHECK(target.files().size() == 3);
  CHECK(source.move("folder", target) == "folder");
  CHECK(text_of(to / "folder" / "inside") == "inside");
  CHECK(source.move("link", target) == "link");
  CHECK(fs::read_symlink(to / "link") == "nowhere");
  CHECK(source.entries().empty());
  CHECK_THROWS(source.move("absent", target));
}
