// Data that stay in their files: the same numbers, and errors where a file is no longer what it was.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "error_of.hpp"
#include "fusion/data/readers.hpp"
#include "fusion/data/safetensors.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

constexpr std::uint64_t kLittle = 8;  // bytes of memory, so that nothing of more than one is loaded
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;
constexpr std::int64_t kSamples = 40;

template <typename T>
std::vector<T> counted(std::size_t n, int below) {
  std::vector<T> numbers;
  for (std::size_t i = 0; i < n; ++i) numbers.push_back(static_cast<T>(i * 7 % static_cast<std::size_t>(below)));
  return numbers;
}

std::string big_endian_idx(std::uint8_t type, const std::string& numbers, std::uint8_t width) {
  std::string text = {0, 0, static_cast<char>(type), static_cast<char>(width > 0 ? 2 : 1), 0, 0, 0, kSamples};
  if (width > 0) text += {0, 0, 0, static_cast<char>(width)};
  return text + numbers;
}

std::string safetensors(const std::vector<float>& x, const std::vector<std::int64_t>& y) {
  const std::vector<TensorView> tensors = {{"x", "F32", {kSamples, 3}, std::as_bytes(std::span(x))},
                                           {"y", "I64", {kSamples}, std::as_bytes(std::span(y))}};
  const std::vector<std::byte> bytes = write_safetensors(tensors, {});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file of each kind that can stay where it is.
std::vector<DataSource> sources(const TemporaryFolder& folder) {
  const auto x = counted<std::uint16_t>(kSamples * 3, 1000);
  const auto y = counted<std::uint8_t>(kSamples, 5);
  std::vector<DataSource> all(5);
  all[0].train = folder.write("npy/x.npy", npy("<u2", "(40, 3)", x));
  all[0].y = "y.npy";
  folder.write("npy/y.npy", npy("|u1", "(40,)", y));
  all[1].train =
      folder.write("d.safetensors", safetensors(std::vector<float>(x.begin(), x.end()), {y.begin(), y.end()}));
  all[2].train = folder.write("idx/x.idx", big_endian_idx(0x0B, bytes_of(x), 3));  // other numbers, as good
  all[2].y = "y.idx";
  folder.write("idx/y.idx", big_endian_idx(0x08, bytes_of(y), 0));
  std::string records;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    records += static_cast<char>(i % 10);
    for (int k = 0; k < 3072; ++k) records += static_cast<char>(i * 31 + k);
  }
  all[3].train = folder.write("data_batch_1.bin", records);
  all[4].train = folder.write("t.bin", bytes_of(counted<std::uint16_t>(kSamples * 3 + 1, 50)));
  all[4].window = 3;
  return all;
}

}  // namespace

TEST_CASE("what stays in its file gives the numbers that are loaded, split and in any order", "[parts]") {
  const TemporaryFolder folder;
  for (DataSource source : sources(folder)) {
    source.validation = 0.25;
    for (const bool fraction : {false, true}) {
      if (!fraction)
        source.validation.reset();
      else
        source.validation = 0.25;
      CAPTURE(source.train, fraction);
      const Splits loaded = load_data(source, kClassTargets, 1, "", {}, kPlenty);
      const Splits there = load_data(source, kClassTargets, 1, "", {}, kLittle);
      const auto compare = [](const Field& a, const Field& b, std::int64_t size) {
        CHECK(a.data.memory() != nullptr);
        CHECK(b.data.memory() == nullptr);
        CHECK(a.shape == b.shape);
        REQUIRE(a.dtype() == b.dtype());
        const std::vector<std::int64_t> which = {size - 1, 0, 1, 2, 2, size / 2};
        for (const DType to : {DType::kFloat32, DType::kFloat64, DType::kInt64}) {
          std::vector<std::byte> of_a(which.size() * static_cast<std::size_t>(a.stride() * size_of(to))), of_b = of_a;
          a.gather(which, to, of_a.data());
          b.gather(which, to, of_b.data());
          CHECK(of_a == of_b);
        }
      };
      REQUIRE(loaded.train.size == there.train.size);
      compare(loaded.train.inputs[0], there.train.inputs[0], loaded.train.size);
      compare(loaded.train.target, there.train.target, loaded.train.size);
      REQUIRE(loaded.validation.has_value() == fraction);
      if (!fraction) continue;
      CHECK(values<float>(loaded.validation->inputs[0], loaded.validation->size) ==
            values<float>(there.validation->inputs[0], there.validation->size));
    }
  }
}

TEST_CASE("a file that is changed while it is read is an error and no signal", "[parts]") {
  const TemporaryFolder folder;
  for (const DataSource& source : sources(folder)) {
    CAPTURE(source.train);
    const Dataset data = load_data(source, kClassTargets, 1, "", {}, kLittle).train;
    const auto read = [&] { (void)values<float>(data.inputs[0], data.size); };
    CHECK(error_of(read) == "(none)");
    std::filesystem::resize_file(source.train, std::filesystem::file_size(source.train) / 2);
    CHECK_THAT(error_of(read), Catch::Contains("changed while it is read"));
    std::vector<std::byte> last(data.inputs[0].data.type().width);
    CHECK_THAT(error_of([&] { data.inputs[0].data.read(data.inputs[0].data.size() - 1, last); }),
               Catch::Contains("found the end of"));
  }
}

TEST_CASE("what is wrong with numbers is found in a file as in memory", "[parts]") {
  const TemporaryFolder folder;
  std::vector<float> x(200'000, 1);
  x.back() = NAN;
  DataSource source;
  source.train = folder.write("x.npy", npy("<f4", "(200000,)", x));
  source.y = "y.npy";
  std::vector<std::int32_t> y(x.size(), 1);
  folder.write("y.npy", npy("<i4", "(200000,)", y));
  for (const std::uint64_t memory : {kLittle, kPlenty}) {
    CHECK_THAT(error_of([&] { (void)load_data(source, kClassTargets, 1, "", {}, memory); }),
               Catch::Contains("x.npy: found nan at element 199999, wanted finite numbers"));
  }
  x.back() = 0;
  y[150'000] = -3;
  folder.write("x.npy", npy("<f4", "(200000,)", x));
  folder.write("y.npy", npy("<i4", "(200000,)", y));
  for (const std::uint64_t memory : {kLittle, kPlenty}) {
    CHECK_THAT(error_of([&] { (void)load_data(source, kClassTargets, 1, "", {}, memory); }),
               Catch::Contains("found label -3 at element 150000, wanted classes from 0"));
  }
}

TEST_CASE("numbers are stored in the type of their file", "[parts]") {
  const TemporaryFolder folder;
  DataSource source;
  source.train = folder.write("x.npy", npy<std::uint8_t>("|u1", "(4, 2)", {0, 1, 2, 3, 4, 5, 6, 255}));
  source.y = "y.npy";
  folder.write("y.npy", npy<std::uint8_t>("|u1", "(4,)", {0, 1, 2, 3}));
  source.validation = 0.25;
  const Splits splits = load_data(source, kClassTargets, 1, "");
  for (const Dataset* part : {&splits.train, &*splits.validation}) {
    CHECK(part->inputs[0].data.type() == NumberType{'u', 1});
    CHECK(part->inputs[0].dtype() == DType::kFloat32);
    CHECK(part->inputs[0].data.size() == part->size * 2);
    CHECK(part->target.data.type() == NumberType{'u', 1});
    CHECK(part->target.dtype() == DType::kInt64);
  }
}

TEST_CASE("the identity of data has every field and every file", "[parts]") {
  const TemporaryFolder folder;
  DataSource source;
  source.train = folder.write("d.csv", "a,y\n1,2\n");
  const std::string before = identity_of(source);
  CHECK(identity_of(source) == before);
  const std::vector<std::function<void(DataSource&)>> changes = {
      [](DataSource& s) { s.name = "digits"; },
      [](DataSource& s) { s.train += "x"; },
      [](DataSource& s) { s.validation_file = "v"; },
      [](DataSource& s) { s.test_file = "v"; },
      [](DataSource& s) { s.validation = 0.5; },
      [](DataSource& s) { s.test = 0.5; },
      [](DataSource& s) {
        s.x = {"a", "b"};
      },
      [](DataSource& s) { s.x = {"a,b"}; },
      [](DataSource& s) { s.y = "a"; },
      [](DataSource& s) { s.target = "a"; },
      [](DataSource& s) { s.features = {"a"}; },
      [](DataSource& s) { s.window = 1; },
      [](DataSource& s) { s.stride = 1; },
      [](DataSource& s) { s.dtype = "a"; },
      [](DataSource& s) { s.where = "a"; },
  };
  std::vector<std::string> all = {before};
  for (const auto& change : changes) {
    DataSource other = source;
    change(other);
    all.push_back(identity_of(other));
  }
  folder.write("d.csv", "a,y\n1,2\n3,4\n");
  all.push_back(identity_of(source));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) CHECK(all[i] != all[k]);
  }
}

}  // namespace hfta::fusion::test
