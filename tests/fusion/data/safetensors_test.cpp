#include "fusion/data/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(8 + header.size() + data);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::vector<std::byte> sample() {
  static const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  static const std::vector<double> b = {7};
  const std::vector<TensorView> tensors = {{"a", "F32", {2, 3}, std::as_bytes(std::span(a))},
                                           {"b", "F64", {}, std::as_bytes(std::span(b))},
                                           {"empty", "F32", {0}, {}}};
  return write_safetensors(tensors, {{"step", "17"}});
}

}  // namespace

TEST_CASE("what was written is read") {
  const std::vector<std::byte> bytes = sample();
  const SafetensorsFile file = parse_safetensors(bytes);
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.metadata.at("step") == "17");
  CHECK(file.tensors[0].name == "a");
  CHECK(file.tensors[0].shape == std::vector<std::int64_t>{2, 3});
  float last = 0;
  std::memcpy(&last, file.tensors[0].bytes.data() + 20, 4);
  CHECK(last == 6);
}

TEST_CASE("a file cut anywhere is refused") {
  const std::vector<std::byte> bytes = sample();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CHECK_THROWS_AS(parse_safetensors(std::span(bytes).first(length)), Error);
  }
}

TEST_CASE("no byte of the header can be changed into a crash") {
  const std::vector<std::byte> clean = sample();
  for (std::size_t i = 0; i < clean.size(); ++i) {
    for (const int flip : {1, 0x20, 0x80}) {
      std::vector<std::byte> bytes = clean;
      bytes[i] ^= static_cast<std::byte>(flip);
      try {
        for (const TensorView& tensor : parse_safetensors(bytes).tensors) {
          const bool inside =
              tensor.bytes.empty() || (tensor.bytes.data() >= bytes.data() &&
                                       tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
          REQUIRE(inside);
        }
      } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::kStorage);
      }
    }
  }
}

TEST_CASE("a tensor of a type that nobody here reads does not make the others unreadable") {
  const std::string header =
      R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  CHECK(parse_safetensors(file_of(header, 8)).tensors.size() == 2);
}

TEST_CASE("headers that lie are refused by name") {
  const auto [header, data, message] = GENERATE(table<std::string, std::size_t, std::string>({
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "'a' lies at"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "'a' lies at"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "gap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "behind the last"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}})", 4, "absurd shape"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "'a': found 1.5 in its shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0.0,4]}})", 4, "'a': found 0.0 in its shape"},
      {R"({"a":{"dtype":"F32","shape":[[[2]]],"data_offsets":[0,4]}})", 4, "'a': found no number in its shape"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "'a'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "twice"},
      {R"([1,2])", 0, "header"},
      {R"({"a":3})", 0, "header"},
      {"{", 0, "header"},
  }));
  INFO(header);
  CHECK_THROWS_WITH(parse_safetensors(file_of(header, data)), Catch::Contains(message));
}

}  // namespace hfta::fusion
