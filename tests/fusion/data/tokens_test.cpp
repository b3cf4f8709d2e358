// Raw tokens, and CIFAR's files, which end in .bin too.
#include "fusion/data/tokens.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/readers.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

using Integers = std::vector<std::int64_t>;

std::string tokens(std::uint16_t n) {
  std::vector<std::uint16_t> all(n);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  return bytes_of(all);
}

DataSource source_of(const std::filesystem::path& train, std::int64_t window, std::int64_t stride = 0) {
  DataSource source;
  source.train = train;
  source.window = window;
  source.stride = stride;
  return source;
}

std::string error_of(const DataSource& source) {
  try {
    (void)load_data(source, kClassTargets, 1, "", {DType::kInt64});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "(none)";
}

std::string record(const std::string& labels, char pixel) { return labels + std::string(3072, pixel); }

}  // namespace

TEST_CASE("a window has its tokens and those one behind", "[tokens]") {
  const TemporaryFolder folder;
  struct Case {
    std::uint16_t tokens;
    std::int64_t window, stride;
    Integers x, y;
  };
  for (const Case& c : std::vector<Case>{{7, 3, 0, {0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}},
                                         {6, 3, 0, {0, 1, 2}, {1, 2, 3}},  // the last target would be missing
                                         {6, 3, 1, {0, 1, 2, 1, 2, 3, 2, 3, 4}, {1, 2, 3, 2, 3, 4, 3, 4, 5}},
                                         {8, 2, 4, {0, 1, 4, 5}, {1, 2, 5, 6}},
                                         {2, 1, 0, {0}, {1}}}) {
    CAPTURE(c.tokens, c.window, c.stride);
    const auto path = folder.write("t.bin", tokens(c.tokens));
    const Dataset data = load_data(source_of(path, c.window, c.stride), kClassTargets, 1, "", {DType::kInt64}).train;
    CHECK(data.inputs.at(0).shape == Shape{c.window});
    CHECK(data.inputs[0].dtype() == DType::kInt64);
    CHECK(data.inputs[0].data.type() == NumberType{'u', 2});
    CHECK(values<std::int64_t>(data.inputs[0], data.size) == c.x);
    CHECK(values<std::int64_t>(data.target, data.size) == c.y);
  }
}

TEST_CASE("tokens are of the type that is asked for", "[tokens]") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.bin", bytes_of<std::int32_t>({70'000, 1, 2, 3, 4}));
  DataSource source = source_of(path, 2);
  source.dtype = "int32";
  CHECK(values<std::int64_t>(load_data(source, kClassTargets, 1, "", {DType::kInt64}).train.inputs[0], 2) ==
        Integers{70'000, 1, 2, 3});
  source.dtype = "int23";
  CHECK_THAT(error_of(source), Catch::Contains("dtype: found 'int23', wanted a type of tokens; did you mean 'int32'?"));
  source.dtype = "int64";
  CHECK_THAT(error_of(source), Catch::Contains("found 20 bytes, wanted tokens of 8 bytes each"));
  source.dtype = "";
  source.window = 10;
  CHECK_THAT(error_of(source), Catch::Contains("found 10 tokens, wanted more than the 10 of a window"));
  source.window = 0;
  CHECK_THAT(error_of(source), Catch::Contains("window: found nothing, wanted how many tokens a sample has"));
}

TEST_CASE("validation and test are the tail of the tokens, which training never sees", "[tokens]") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.bin", tokens(101));
  for (const std::int64_t stride : {4, 1, 3, 9}) {
    CAPTURE(stride);
    DataSource source = source_of(path, 4, stride);
    source.validation = 0.25;
    source.test = 0.25;
    const Splits splits = load_data(source, kClassTargets, 1, "", {DType::kInt64});
    std::int64_t last_target = 0;
    for (const Dataset* part : {&splits.train, &*splits.validation, &*splits.test}) {
      REQUIRE(part->size > 0);
      const Integers x = values<std::int64_t>(part->inputs[0], part->size);
      const Integers y = values<std::int64_t>(part->target, part->size);
      CHECK(x.front() >= last_target);  // no target is another part's, nor an input before its last
      CHECK(y.front() == x.front() + 1);
      last_target = y.back();
    }
  }
  DataSource source = source_of(path, 50, 1);
  source.validation = 0.25;
  CHECK_THAT(error_of(source), Catch::Contains("found 51 windows, each sharing tokens with the 49 behind it"));
}

TEST_CASE("CIFAR's files are known by their names", "[cifar]") {
  const TemporaryFolder folder;
  folder.write("ten/data_batch_1.bin", record("\3", 'a') + record("\4", 'b'));
  for (const char* rest : {"2", "3", "4"})
    folder.write(std::string("ten/data_batch_") + rest + ".bin", record("\5", 'c'));
  folder.write("ten/data_batch_5.bin", record("\6", 'd'));
  folder.write("hundred/train.bin", record("\1\2", 'a'));
  folder.write("hundred/fine_label_names.txt", "apple\n");
  folder.write("tokens/train.bin", tokens(9));
  struct Case {
    std::string path, y;
    Integers labels;
    float last;
  };
  for (const Case& c : std::vector<Case>{{"ten/data_batch_1.bin", "", {3, 4}, 'b'},
                                         {"ten", "", {3, 4, 5, 5, 5, 6}, 'd'},
                                         {"hundred/train.bin", "", {2}, 'a'},
                                         {"hundred", "coarse", {1}, 'a'},
                                         {"hundred", "fine", {2}, 'a'}}) {
    for (const std::uint64_t memory : {8, 1 << 30}) {
      CAPTURE(c.path, c.y, memory);
      DataSource source = source_of(folder / c.path, 0);
      source.y = c.y;
      const Dataset data = load_data(source, kClassTargets, 1, "", {}, memory).train;
      CHECK(data.inputs.at(0).shape == Shape{3, 32, 32});
      CHECK(data.inputs[0].data.type() == NumberType{'u', 1});
      CHECK(values<std::int64_t>(data.target, data.size) == c.labels);
      CHECK(values<float>(data.inputs[0], data.size).back() == c.last);
    }
  }
  CHECK_THAT(error_of(source_of(folder / "tokens/train.bin", 0)), Catch::Contains("read as raw tokens, unless"));
  CHECK_THAT(error_of(source_of(folder / "ten/data_batch_1.bin", 8)), Catch::Contains("window: found 8 beside a file"));
  DataSource coarse = source_of(folder / "ten", 0);
  coarse.y = "coarse";
  CHECK_THAT(error_of(coarse), Catch::Contains("found no array 'coarse'; valid: x, y"));
  folder.write("ten/data_batch_2.bin", "abc");
  CHECK_THAT(error_of(source_of(folder / "ten", 0)), Catch::Contains("found 15368 bytes, wanted records of 3073"));
  std::filesystem::remove(folder / "ten/data_batch_4.bin");
  CHECK_THAT(error_of(source_of(folder / "ten", 0)),
             Catch::Contains("found no file") && Catch::Contains("data_batch_4.bin"));
}

}  // namespace hfta::fusion::test
