// What data are known by when they are read again.
#include "fusion/data/fingerprint.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "npy_text.hpp"
#include "temporary_folder.hpp"

namespace hfta::fusion::test {
namespace {

DataSource pair_in(const std::filesystem::path& folder) {
  DataSource source;
  source.train = folder / "x.npy";
  source.y = "y.npy";
  return source;
}

void write(const std::filesystem::path& file, const std::string& type, const std::string& shape,
           const std::string& numbers) {
  std::ofstream(file, std::ios::binary) << npy_file(npy_header(type, shape), numbers);
}

// `memory` of 8 bytes: nothing is loaded.
std::string found(const std::filesystem::path& folder, std::uint64_t memory = 0) {
  return load_data(pair_in(folder), kClassTargets, 1, "", {}, memory).fingerprint;
}

}  // namespace

TEST_CASE("every number of data in memory, their order and their shape make their fingerprint", "[fingerprint]") {
  const TemporaryFolder folder;
  std::vector<float> x(3 * 37);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::vector<std::int64_t> y(37, 1);
  const auto with = [&](const std::vector<float>& numbers, const std::string& shape = "(37, 3)") {
    write(folder / "x.npy", "<f4", shape, bytes_of(numbers));
    write(folder / "y.npy", "<i8", "(37,)", bytes_of(y));
    return found(folder / "");
  };
  std::set<std::string> all = {with(x)};
  CHECK(with(x) == *all.begin());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<float> other = x;
    other[i] += 0.5F;
    all.insert(with(other));
  }
  std::vector<float> swapped = x;
  std::swap(swapped[0], swapped[1]);
  all.insert(with(swapped));
  all.insert(with(x, "(37, 3, 1)"));
  y[7] = 2;
  all.insert(with(x));
  CHECK(all.size() == x.size() + 4);
}

TEST_CASE("folds, fractions and where the folder lies do not change the fingerprint", "[fingerprint]") {
  const TemporaryFolder here, there;
  for (const TemporaryFolder* folder : {&here, &there}) {
    write(*folder / "x.npy", "<f4", "(40, 1)", std::string(160, 'a'));
    write(*folder / "y.npy", "<i8", "(40,)", bytes_of(std::vector<std::int64_t>(40, 0)));
  }
  DataSource source = pair_in(here / "");
  source.test = 0.2;
  source.folds = {4, 2, false, ""};
  CHECK(load_data(source, kClassTargets, 1, "").fingerprint == found(there / ""));
  CHECK(reading_of(source, here / "") == reading_of(pair_in(there / ""), there / ""));
  CHECK(reading_of(source, here / "..") != reading_of(source, here / ""));
  DataSource other = source;
  other.y = "x.npy";
  CHECK(reading_of(other, here / "") != reading_of(source, here / ""));
}

TEST_CASE("signs that flip together, and groups, make another fingerprint", "[fingerprint]") {
  const TemporaryFolder folder;
  write(folder / "y.npy", "<i8", "(40,)", bytes_of(std::vector<std::int64_t>(40, 1)));
  const auto with = [&]<typename T>(const std::vector<T>& x, const std::string& type) {
    write(folder / "x.npy", type, "(40, 8)", bytes_of(x));
    return found(folder / "");
  };
  const auto check = [&]<typename T>(T /*of*/, const std::string& type) {
    std::vector<T> x(320);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i + 1);
    std::set<std::string> all = {with(x, type)};
    for (std::size_t column = 0; column < 8; ++column) {
      std::vector<T> flipped = x;
      for (std::size_t row = 0; row < 40; ++row) flipped[8 * row + column] = -flipped[8 * row + column];
      all.insert(with(flipped, type));
    }
    for (T& number : x) number = -number;
    all.insert(with(x, type));
    CHECK(all.size() == 10);
  };
  check(double{}, "<f8");
  check(float{}, "<f4");
  std::ofstream(folder / "t.csv") << "a,g,y\n1,1,0\n2,1,1\n3,2,0\n4,2,1\n";
  DataSource table;
  table.train = folder / "t.csv";
  table.target = "y";
  table.folds = {2, 0, false, "g"};
  const std::string before = load_data(table, kClassTargets, 1, "").fingerprint;
  std::ofstream(folder / "t.csv") << "a,g,y\n1,1,0\n2,2,1\n3,2,0\n4,1,1\n";
  CHECK(load_data(table, kClassTargets, 1, "").fingerprint != before);
}

TEST_CASE("data have one fingerprint in memory and in a file", "[fingerprint]") {
  const TemporaryFolder folder;
  const std::int64_t samples = 9000;  // several pieces
  std::vector<float> x(static_cast<std::size_t>(7 * samples));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  write(folder / "x.npy", "<f4", "(9000, 7)", bytes_of(x));
  write(folder / "y.npy", "<i8", "(9000,)", bytes_of(std::vector<std::int64_t>(9000, 1)));
  CHECK(found(folder / "") == found(folder / "", 8));
}

TEST_CASE("of a large array the fingerprint takes the first and the last numbers, and pieces between",
          "[fingerprint]") {
  const TemporaryFolder folder;
  const std::int64_t piece = 1 << 16, pieces = kWholeBytes / piece + 16;
  write(folder / "y.npy", "|u1", fmt::format("({},)", pieces), std::string(static_cast<std::size_t>(pieces), '\0'));
  const std::string header = npy_file(npy_header("|u1", fmt::format("({}, {})", pieces, piece)), "");
  const auto with = [&](std::int64_t place, char number) {
    const std::filesystem::path file = folder / "x.npy";
    std::ofstream(file, std::ios::binary) << header;
    const std::uintmax_t size = header.size() + static_cast<std::uintmax_t>(piece * pieces);
    std::filesystem::resize_file(file, size);  // zeros that take no room
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(header.size()) + place).put(number);
    out.close();
    return found(folder / "", 8);
  };
  const std::string plain = with(0, 0);
  CHECK(with(1, 1) != plain);
  CHECK(with(piece * pieces - 1, 1) != plain);
  CHECK(with((pieces - 1) / (kPieces - 1) * piece, 1) != plain);  // the second piece that is taken
  CHECK(with(piece, 1) == plain);
}

}  // namespace hfta::fusion::test
