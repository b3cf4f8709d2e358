#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/file_bytes.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

StoredArray parse(const std::string& bytes, Use use = Use::kNumbers) {
  return parse_npy(in_memory(bytes), use, "x.npy");
}

std::string error_of(const std::string& bytes, Use use = Use::kNumbers) {
  try {
    (void)parse(bytes, use);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "(none)";
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Labels = std::vector<std::int64_t>;

TEST_CASE("every plain type becomes the number kind that holds it", "[npy]") {
  struct TypeCase {
    std::string type, payload;
    Numbers numbers;
    Labels labels;
  };
  const std::vector<TypeCase> cases = {
      {"|b1", {'\0', '\1'}, Floats{0, 1}, {0, 1}},
      {"|u1", bytes_of<std::uint8_t>({0, 255}), Floats{0, 255}, {0, 255}},
      {"|i1", bytes_of<std::int8_t>({-1, 127}), Floats{-1, 127}, {-1, 127}},
      {"<u2", bytes_of<std::uint16_t>({3, 65535}), Floats{3, 65535}, {3, 65535}},
      {"<i2", bytes_of<std::int16_t>({-3, 32767}), Floats{-3, 32767}, {-3, 32767}},
      {"<u4", bytes_of<std::uint32_t>({3, 4294967295}), Doubles{3, 4294967295}, {3, 4294967295}},
      {"<i4", bytes_of<std::int32_t>({-3, 2147483647}), Doubles{-3, 2147483647}, {-3, 2147483647}},
      {"<u8", bytes_of<std::uint64_t>({3, 1}), Doubles{3, 1}, {3, 1}},
      {"<i8", bytes_of<std::int64_t>({-3, 1LL << 60}), Doubles{-3, 0x1p60}, {-3, 1LL << 60}},
      {"<f2", bytes_of<std::uint16_t>({0x3c00, 0xc100}), Floats{1, -2.5}, {}},
      {"<f4", bytes_of<float>({1, 2}), Floats{1, 2}, {1, 2}},
      {"<f4", bytes_of<float>({0.1F, -3e38F}), Floats{0.1F, -3e38F}, {}},
      {"<f8", bytes_of<double>({7, -2}), Doubles{7, -2}, {7, -2}},
      {"<f8", bytes_of<double>({0.1, 1e300}), Doubles{0.1, 1e300}, {}},
      {">f4", {'\x3f', '\x80', 0, 0, '\x40', 0, 0, 0}, Floats{1, 2}, {1, 2}},
      {">i2", {'\1', '\2', '\xff', '\xff'}, Floats{258, -1}, {258, -1}},
      {"=i2", bytes_of<std::int16_t>({5, 6}), Floats{5, 6}, {5, 6}},
  };
  for (const TypeCase& c : cases) {
    CAPTURE(c.type);
    const std::string file = npy_file(npy_header(c.type, "(2,)"), c.payload);
    CHECK(parse(file).shape == Shape{2});
    CHECK(parse(file).numbers == c.numbers);
    if (!c.labels.empty()) {
      CHECK(parse(file, Use::kLabels).numbers == Numbers(c.labels));
    } else {
      CHECK_THAT(error_of(file, Use::kLabels), Catch::Contains("wanted a whole number"));
    }
  }
}

TEST_CASE("half floats cover subnormals and both ends", "[npy]") {
  const auto file = npy<std::uint16_t>("<f2", "(5,)", {0x0001, 0x03ff, 0x0400, 0x7bff, 0x8000});
  CHECK(values<float>(parse(file).numbers) == Floats{0x1p-24F, 1023 * 0x1p-24F, 0x1p-14F, 65504, -0.0F});
}

TEST_CASE("Fortran order is put right", "[npy]") {
  // a[i][j][k] = 100 i + 10 j + k for shape (2, 3, 2), first index fastest.
  Floats columns;
  Floats rows;
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) columns.push_back(static_cast<float>(100 * i + 10 * j + k));
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) rows.push_back(static_cast<float>(100 * i + 10 * j + k));
    }
  }
  const StoredArray array = parse(npy_file(npy_header("<f4", "(2, 3, 2)", true), bytes_of(columns)));
  CHECK(values<float>(array.numbers) == rows);
}

TEST_CASE("headers are read as Python may write them", "[npy]") {
  const std::string payload = bytes_of<float>({1, 2});
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    CHECK(values<float>(parse(npy_file(npy_header("<f4", "(2,)"), payload, version)).numbers) == Floats{1, 2});
  }
  for (const std::string header : {"{'shape': (1, 2), 'fortran_order': False, 'descr': '<f4'}",
                                   "{\"shape\":(1,2,),\"fortran_order\":False,\"descr\":\"<f4\",}",
                                   "  { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 1 , 2 ) , } \n\n"}) {
    CAPTURE(header);
    CHECK(parse(npy_file(header, payload)).shape == Shape{1, 2});
  }
  CHECK(parse(npy<double>("<f8", "()", {1})).shape.empty());
  CHECK(parse(npy<float>("<f4", "(0, 3)", {})).shape == Shape{0, 3});
}

TEST_CASE("what is no array of numbers is refused", "[npy]") {
  const std::string four(4, '\0');
  struct Refused {
    std::string bytes, message;
  };
  const std::vector<Refused> cases = {
      {"", "x.npy: found no NumPy array"},
      {"PK\3\4 not an array", "x.npy: found no NumPy array"},
      {npy_file(npy_header("<f4", "(1,)"), four, 4), "found .npy format version 4, wanted 1 to 3"},
      {npy_file(npy_header("|O", "(1,)"), four), "found an array of Python objects '|O', wanted numbers"},
      {npy_file(npy_header("<U3", "(1,)"), four), "found an array of type '<U3', wanted numbers"},
      {npy_file(npy_header("<c8", "(1,)"), four), "found an array of type '<c8', wanted numbers"},
      {npy_file(npy_header("<f16", "(1,)"), four), "found an array of type '<f16', wanted numbers"},
      {npy_file(npy_header("<i3", "(1,)"), four), "found an array of type '<i3', wanted numbers"},
      {npy_file(npy_header("", "(1,)"), four), "found an array of type '', wanted numbers"},
      {npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four), "found an array of records"},
      {npy_file("{'descr': '<f4', 'fortran_order': False}", four), "damaged .npy header"},
      {npy_file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", four), "once each"},
      {npy_file("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", four), "wanted True or False"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + x", four), "wanted its end"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", four), "wanted a size"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", four), "wanted a size"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", four), "wanted '('"},
      {npy_file("{'descr': '<f4\x1b[2J", four), "at ''<f4\\x1b[2J"},
      {npy_file(npy_header("<f4", "(2,)"), four), "found 4 bytes of numbers, wanted 8 for shape [2]"},
      {npy_file(npy_header("<f4", "(1,)"), four + "x"), "found 5 bytes of numbers, wanted 4 for shape [1]"},
      {npy_file(npy_header("<f4", "(2500000000,)"), four), "found 4 bytes of numbers, wanted 10000000000"},
      {npy_file(npy_header("<f4", "(4611686018427387905, 4)"), four), "wanted a size that fits into memory"},
      {npy_file(npy_header("<f4", "(4294967296, 4294967296)"), four), "wanted a size that fits into memory"},
      {npy<float>("<f4", "(2,)", {1, NAN}), "found nan at element 1, wanted finite numbers"},
      {npy<double>("<f8", "(2,)", {-INFINITY, 1}), "found -inf at element 0, wanted finite numbers"},
  };
  for (const Refused& c : cases) {
    CAPTURE(c.message);
    CHECK_THAT(error_of(c.bytes), Catch::Contains(c.message));
  }
  CHECK_THAT(error_of(npy<std::uint64_t>("<u8", "(1,)", {1ULL << 63}), Use::kLabels),
             Catch::Contains("found label 9223372036854775808 at element 0"));
  CHECK_THAT(error_of(npy<double>("<f8", "(1,)", {1e300}), Use::kLabels), Catch::Contains("wanted a whole number"));
}

TEST_CASE("a .npy file cut anywhere is refused", "[npy]") {
  for (const int version : {1, 2}) {
    const std::string whole = npy_file(npy_header("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, 6}), version);
    REQUIRE(error_of(whole) == "(none)");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(version, size);
      CHECK(error_of(whole.substr(0, size)) != "(none)");
    }
  }
}

TEST_CASE("no flipped bit of a header makes the reader misbehave", "[npy]") {
  const std::string whole = npy_file(npy_header("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, 6}));
  const std::size_t header_end = whole.size() - 24;
  for (std::size_t i = 0; i < header_end; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      try {
        // Some flips leave a header of the same size in bytes: (3, 2) or <i4, say.
        const StoredArray array = parse(bytes);
        const auto count = static_cast<std::size_t>(array.numbers.size());
        std::size_t product = 1;
        for (const std::int64_t size : array.shape) product *= static_cast<std::size_t>(size);
        CHECK(count == product);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kConfig);
      }
    }
  }
}

TEST_CASE("an array has as many dimensions as NumPy's have, and those of one cost nothing", "[npy]") {
  const auto shape_of = [](int dimensions, const std::string& last) {
    std::string shape = "(";
    for (int i = 1; i < dimensions; ++i) shape += "1,";
    return shape + last + ",)";
  };
  const std::vector<std::uint8_t> numbers(3'000'000, 1);
  const std::string deep = npy_file(npy_header("|u1", shape_of(64, "3000000"), true), bytes_of(numbers));
  CHECK(parse(deep).shape.size() == 64);
  for (const int dimensions : {65, 8000}) {
    const std::string deeper = npy_file(npy_header("|u1", shape_of(dimensions, "3"), true), "abc");
    CHECK_THROWS_WITH(parse(deeper), Catch::Contains("found an array of more than 64 dimensions"));
  }
}

TEST_CASE("a message echoes little of a file, however long its words", "[npy]") {
  const std::string type(60'000, 'z');
  try {
    (void)parse(npy_file(npy_header(type, "(1,)"), "abcd"));
    FAIL("no such type");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() < 400);
  }
}

TEST_CASE("files that cannot be read are named", "[npy]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_bytes(folder / "none", "d.yaml:3"), Catch::Contains("d.yaml:3: found no file '"));
  CHECK_THROWS_WITH(read_bytes(folder / "", "d.yaml:3"), Catch::Contains("wanted a file"));
  CHECK(read_bytes(folder.write("empty", ""), "").empty());
}

}  // namespace
}  // namespace hfta::fusion::test
