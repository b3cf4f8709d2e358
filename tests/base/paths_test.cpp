// Paths that are kept where a folder and its files may move together.
#include "base/paths.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/stamp.hpp"
#include "base/temporary_folder.hpp"

using namespace hfta;

TEST_CASE("a file in the folder is named from there, another one by its whole path") {
  struct Case {
    const char *folder, *file, *wanted;
  };
  const Case cases[] = {
      {"/a", "/a/b.csv", "b.csv"},
      {"/a/", "/a/b/../c.csv", "c.csv"},
      {"/a", "/ab/c.csv", "/ab/c.csv"},
      {"/a/b", "/a/c.csv", "/a/c.csv"},
      {"/a", "/a", "."},
      {"/a", "", ""},
  };
  for (const Case& c : cases) {
    INFO(c.folder << " " << c.file);
    CHECK(path_from(c.folder, c.file) == c.wanted);
  }
  CHECK(path_from("", "b.csv") == std::filesystem::absolute("b.csv"));
  CHECK(path_from(".", "b.csv") == "b.csv");
}

TEST_CASE("a stamp changes when a file is written, and is empty without it") {
  const TemporaryFolder folder("stamps");
  const std::filesystem::path file = folder.path() / "a";
  CHECK(stamp_of(file).empty());
  std::ofstream(file) << "1";
  const std::string before = stamp_of(file);
  CHECK_FALSE(before.empty());
  CHECK(stamp_of(file) == before);
  std::ofstream(file) << "22";
  CHECK(stamp_of(file) != before);
}
