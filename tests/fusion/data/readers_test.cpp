// Kinds of data files beside NumPy's and tables: IDX and safetensors.
#include "fusion/data/readers.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "error_of.hpp"
#include "fusion/data/idx.hpp"
#include "fusion/data/safetensors.hpp"
#include "temporary_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

std::string idx(unsigned type, const std::vector<unsigned>& shape, const std::string& numbers) {
  std::string text = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const unsigned extent : shape) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(extent >> shift);
  }
  return text + numbers;
}

DataSource source_of(const std::filesystem::path& train) {
  DataSource source;
  source.train = train;
  source.where = "d.yaml:3";
  return source;
}

}  // namespace

TEST_CASE("IDX files of every type are read, big-endian") {
  const auto numbers = [](unsigned type, const std::string& text) {
    return as_doubles(parse_idx(in_memory(idx(type, {2, 1}, text)), Use::kNumbers, "f").numbers);
  };
  CHECK(numbers(0x08, {'\x01', '\xff'}) == std::vector<double>{1, 255});
  CHECK(numbers(0x09, {'\x01', '\xff'}) == std::vector<double>{1, -1});
  CHECK(numbers(0x0B, {0, 1, '\xff', '\xfe'}) == std::vector<double>{1, -2});
  CHECK(numbers(0x0C, {0, 0, 1, 0, '\xff', '\xff', '\xff', '\xff'}) == std::vector<double>{256, -1});
  CHECK(numbers(0x0D, {'\x3f', '\x80', 0, 0, '\xc0', 0, 0, 0}) == std::vector<double>{1, -2});
  CHECK(numbers(0x0E, {'\x3f', '\xf0', 0, 0, 0, 0, 0, 0, '\xc0', 0, 0, 0, 0, 0, 0, 0}) == std::vector<double>{1, -2});
  const StoredArray bytes = parse_idx(in_memory(idx(0x08, {2, 3}, "abcdef")), Use::kNumbers, "f");
  CHECK(bytes.shape == Shape{2, 3});
  CHECK(bytes.numbers.dtype() == DType::kFloat32);
  CHECK(bytes.numbers.type() == NumberType{'u', 1});
}

TEST_CASE("what is no IDX file is refused with words") {
  const auto error = [](const std::string& text) {
    return error_of([&] { (void)parse_idx(in_memory(text), Use::kNumbers, "f"); });
  };
  CHECK(error("") == "f: found no IDX header, wanted two zero bytes");
  CHECK(error("abcd") == "f: found no IDX header, wanted two zero bytes");
  CHECK(error(idx(0x0A, {1}, "a")) == "f: found type 0x0a in the header, wanted one of IDX's: 0x08 to 0x0e");
  CHECK(error(idx(0x08, {1, 1}, "").substr(0, 8)) == "f: found 8 bytes, wanted a header of 12");
  CHECK(error(idx(0x08, {2, 2}, "abc")) == "f: found 3 bytes of numbers, wanted more for a shape that begins [2, 2]");
  CHECK(error(idx(0x08, {2, 2}, "abcde")) == "f: found 5 bytes of numbers, wanted 4 for shape [2, 2]");
  const unsigned most = 0xffffffff;  // a product that no 64 bits hold
  CHECK_THAT(error(idx(0x0E, {most, most, most}, "abcdefgh")), Catch::Contains("wanted more for a shape"));
}

TEST_CASE("MNIST's files are data as they are") {
  const TemporaryFolder folder;
  DataSource source = source_of(folder.write("train-images-idx3-ubyte", idx(0x08, {2, 2, 2}, "abcdefgh")));
  folder.write("train-labels-idx1-ubyte", idx(0x08, {2}, std::string{7, 0}));
  source.y = "train-labels-idx1-ubyte";
  CHECK(data_keys(source.train) == DataKeys::kPair);
  const Dataset data = load_data(source, kClassTargets, 1, "").train;
  CHECK(data.size == 2);
  CHECK(data.inputs.at(0).shape == Shape{2, 2});
  CHECK(values<float>(data.inputs[0].data)[7] == 'h');
  CHECK(values<std::int64_t>(data.target.data) == std::vector<std::int64_t>{7, 0});
  source.y.clear();
  CHECK_THAT(error_of([&] { (void)load_data(source, kClassTargets, 1, ""); }),
             Catch::Contains("wanted the file of the targets"));
}

TEST_CASE("arrays of a safetensors file are read by name, of every type of numbers") {
  const TemporaryFolder folder;
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<std::uint16_t> half = {0x3F80, 0xC000};  // as bfloat16: 1, -2
  const std::vector<std::int64_t> y = {1, 0};
  const auto view = [](const char* name, const char* type, Shape shape, const auto& numbers) {
    return TensorView{name, type, std::move(shape), std::as_bytes(std::span(numbers))};
  };
  const std::vector<TensorView> tensors = {view("x", "F32", {2, 2}, x), view("half", "BF16", {2}, half),
                                           view("y", "I64", {2}, y), view("z", "C64", {2}, x)};
  const std::vector<std::byte> bytes = write_safetensors(tensors, {});
  DataSource source =
      source_of(folder.write("d.safetensors", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  source.x = {"x", "half"};
  const Dataset data = load_data(source, kClassTargets, 1, "").train;
  CHECK(data.size == 2);
  CHECK(values<float>(data.inputs.at(0).data) == x);
  CHECK(values<float>(data.inputs.at(1).data) == std::vector<float>{1, -2});
  CHECK(values<std::int64_t>(data.target.data) == y);
  source.x = {"hlf"};
  CHECK_THAT(error_of([&] { (void)load_data(source, kClassTargets, 1, ""); }),
             Catch::Contains("found no array 'hlf'; did you mean 'half'?"));
  source.x = {"z"};
  CHECK_THAT(error_of([&] { (void)load_data(source, kClassTargets, 1, ""); }),
             Catch::Contains("z: found complex numbers (C64), wanted real ones"));
  const DataSource broken = source_of(folder.write("e.safetensors", "abc"));
  CHECK_THAT(error_of([&] { (void)load_data(broken, kClassTargets, 1, ""); }), Catch::Contains("e.safetensors: "));
}

TEST_CASE("every reader takes files of its own by name") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"a.npz", ".npz"},
      {"A.NPZ", ".npz"},
      {"a.npy", ".npy"},
      {"a.csv", ".csv, .tsv (also with .gz)"},
      {"a.TSV.gz", ".csv, .tsv (also with .gz)"},
      {"a.safetensors", ".safetensors"},
      {"t10k-images-idx3-ubyte.gz", "an IDX file (MNIST's; also with .gz)"},
      {"t10k-images.idx3-ubyte", "an IDX file (MNIST's; also with .gz)"},
      {"emnist.idx", "an IDX file (MNIST's; also with .gz)"},
      {"my-idx.csv", ".csv, .tsv (also with .gz)"},
      {"data_batch_3.bin", "CIFAR's binary files, or their folder"},
      {"Test_Batch.bin", "CIFAR's binary files, or their folder"},
      {"train.bin", ".bin (raw tokens)"},
      {"a.parquet", ""},
      {"midx", ""},
  };
  for (const auto& [name, kind] : cases) {
    CAPTURE(name);
    const DataReader* const reader = reader_of(name);
    CHECK(std::string(reader == nullptr ? "" : reader->kind) == kind);
  }
}

}  // namespace hfta::fusion::test
