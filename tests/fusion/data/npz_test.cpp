#include <zip.h>

#include <catch2/catch.hpp>
#include <memory>

#include "base/error.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/file_bytes.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{4} << 30;  // of the machine, so that every machine reads alike

struct Member {
  std::string name, bytes;
  bool deflated = false;
};

std::filesystem::path write_zip(const std::filesystem::path& path, const std::vector<Member>& members) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  REQUIRE(archive != nullptr);
  for (const Member& member : members) {
    zip_source_t* source = zip_source_buffer(archive, member.bytes.data(), member.bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.name.c_str(), source, 0);
    REQUIRE(index >= 0);
    REQUIRE(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                     member.deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9) == 0);
  }
  REQUIRE(zip_close(archive) == 0);
  return path;
}

std::string error_of(const std::filesystem::path& path, const std::string& name) {
  try {
    Allowance allowance(std::filesystem::file_size(path), kMemory);
    (void)read_npz(path, name, Use::kNumbers, DataFiles(kMemory), allowance, "d.npz");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "(none)";
}

std::string file_text(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_bytes(path, "");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The four bytes at every occurrence of `from` in the archive's directories, replaced.
std::string patched(std::string bytes, std::uint32_t from, std::uint32_t to) {
  const std::string old = bytes_of<std::uint32_t>({from});
  const std::string fresh = bytes_of<std::uint32_t>({to});
  for (std::size_t at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at + 4))
    bytes.replace(at, 4, fresh);
  return bytes;
}

TEST_CASE("stored and deflated members are read", "[npz]") {
  const TemporaryFolder folder;
  const auto path = write_zip(folder / "d.npz", {{"x.npy", npy<float>("<f4", "(2, 2)", {1, 2, 3, 4}), true},
                                                 {"y.npy", npy<std::int64_t>("<i8", "(2,)", {7, 9}), false}});
  Allowance allowance(std::filesystem::file_size(path), kMemory);
  const StoredArray x = read_npz(path, "x", Use::kNumbers, DataFiles(kMemory), allowance, "");
  CHECK(x.shape == Shape{2, 2});
  CHECK(x.numbers == Numbers(std::vector<float>{1, 2, 3, 4}));
  CHECK(read_npz(path, "y", Use::kLabels, DataFiles(kMemory), allowance, "").numbers ==
        Numbers(std::vector<std::int64_t>{7, 9}));
}

TEST_CASE("missing arrays are named with the nearest", "[npz]") {
  const TemporaryFolder folder;
  const std::string one = npy<float>("<f4", "(1,)", {1});
  const auto path = write_zip(folder / "d.npz", {{"images.npy", one}, {"labels.npy", one}, {"readme.txt", "hello"}});
  CHECK(error_of(path, "image") == "d.npz: found no array 'image'; did you mean 'images'?");
  CHECK(error_of(path, "x") == "d.npz: found no array 'x'; valid: images, labels");
  CHECK_THAT(error_of(folder.write("no.npz", "this is no archive"), "x"), Catch::Contains("cannot read it as .npz"));
  CHECK_THAT(error_of(write_zip(folder / "t.npz", {{"x.npy", "not an array"}}), "x"),
             Catch::Contains("d.npz: x: found no NumPy array"));
}

TEST_CASE("an archive cut anywhere is refused", "[npz]") {
  const TemporaryFolder folder;
  const std::string x = npy<float>("<f4", "(8,)", {1, 2, 3, 4, 5, 6, 7, 8});
  for (const bool deflated : {false, true}) {
    const std::string whole = file_text(write_zip(folder / "d.npz", {{"x.npy", x, deflated}}));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(deflated, size);
      CHECK(error_of(folder.write("cut.npz", whole.substr(0, size)), "x") != "(none)");
    }
  }
}

TEST_CASE("a stored member of a file too large to load is read in parts", "[npz]") {
  const TemporaryFolder folder;
  std::vector<float> numbers(5000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const std::string x = npy("<f4", "(5000,)", numbers);
  const auto path = write_zip(folder / "d.npz", {{"a.npy", npy<float>("<f4", "(1,)", {1}), true}, {"x.npy", x}});
  Allowance none(0, 1);
  const StoredArray array = read_npz(path, "x", Use::kNumbers, DataFiles(1), none, "d.npz");
  CHECK(array.numbers.memory() == nullptr);
  CHECK(array.numbers == Numbers(numbers));
  std::vector<float> some(2);
  array.numbers.read(4998, std::as_writable_bytes(std::span(some)));
  array.numbers.read(17, std::as_writable_bytes(std::span(some).first(1)));
  CHECK(some == std::vector<float>{17, 4999});
}

TEST_CASE("no flipped byte of the numbers goes unnoticed", "[npz]") {
  const TemporaryFolder folder;
  const std::string x = npy<float>("<f4", "(8,)", {1, 2, 3, 4, 5, 6, 7, 8});
  const Numbers numbers = std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto& [deflated, memory] : {std::pair(false, kMemory), {true, kMemory}, {false, std::uint64_t{1}}}) {
    const std::string whole = file_text(write_zip(folder / "d.npz", {{"x.npy", x, deflated}}));
    std::size_t refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CAPTURE(deflated, memory, i);
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ 1);
      try {
        Allowance allowance(bytes.size(), kMemory);
        // A flip of what nobody needs (dates, deflate's mark of the last block) may pass, other numbers may not.
        const StoredArray array =
            read_npz(folder.write("flipped.npz", bytes), "x", Use::kNumbers, DataFiles(memory), allowance, "");
        CHECK(array.numbers == numbers);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kConfig);
        ++refused;
      }
    }
    CHECK(refused > whole.size() / 3);
  }
}

TEST_CASE("claims that the file does not bear out are refused before memory is taken", "[npz]") {
  const TemporaryFolder folder;
  const std::string x = npy<float>("<f4", "(300,)", std::vector<float>(300));
  const auto size = static_cast<std::uint32_t>(x.size());
  const std::string stored = file_text(write_zip(folder / "s.npz", {{"x.npy", x, false}}));
  CHECK_THAT(error_of(folder.write("claim.npz", patched(stored, size, 4000000000U)), "x"),
             Catch::Contains("found a member of 4000000000 bytes in a file of"));
  const std::string deflated = file_text(write_zip(folder / "z.npz", {{"x.npy", x, true}}));
  CHECK_THAT(error_of(folder.write("bomb.npz", patched(deflated, size, 4000000000U)), "x"),
             Catch::Contains("found 4000000000 bytes in a file of"));
  CHECK_THAT(error_of(folder.write("small.npz", patched(deflated, size, size + 4)), "x"),
             Catch::Contains("found a damaged member"));
}

TEST_CASE("what compresses well is read as long as the file, or the machine, is large enough", "[npz]") {
  const TemporaryFolder folder;
  const std::size_t count = std::size_t{20} << 20;  // 20 MiB of zeros, which stay bytes
  const std::string zeros = npy_file(npy_header("|u1", "(" + std::to_string(count) + ",)"), std::string(count, '\0'));
  const auto path = write_zip(folder / "mask.npz", {{"x.npy", zeros, true}, {"x2.npy", zeros, true}});
  const std::uint64_t size = std::filesystem::file_size(path);
  REQUIRE(size < count / 100);
  const auto read = [&](std::uint64_t memory, const std::vector<std::string>& names) -> std::string {
    Allowance allowance(size, memory);
    try {
      for (const std::string& name : names)
        (void)read_npz(path, name, Use::kNumbers, DataFiles(kMemory), allowance, "d.npz");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return error.what();
    }
    return "";
  };
  CHECK(read(std::uint64_t{8} * 30 << 20, {"x"}).empty());
  CHECK_THAT(read(std::uint64_t{8} * 15 << 20, {"x"}),
             Catch::Contains("d.npz: x: found " + std::to_string(zeros.size()) + " bytes in a file of " +
                             std::to_string(size)) &&
                 Catch::Contains("numpy.savez, uncompressed"));
  CHECK_THAT(read(std::uint64_t{8} * 30 << 20, {"x", "x2"}), Catch::Contains("d.npz: x2: "));  // all together
  CHECK(read(std::uint64_t{8} * 45 << 20, {"x", "x2"}).empty());
  // Saved as the message says, the same numbers are as large as their file.
  const auto stored = write_zip(folder / "stored.npz", {{"x.npy", zeros, false}});
  Allowance allowance(std::filesystem::file_size(stored), 1);
  CHECK(read_npz(stored, "x", Use::kNumbers, DataFiles(kMemory), allowance, "").shape ==
        Shape{static_cast<std::int64_t>(count)});
}

}  // namespace
}  // namespace hfta::fusion::test
