#include "fusion/dataset.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/range.hpp"
#include "fusion/data/split.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "tests/source_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

const std::filesystem::path kData = hfta::testing::source_folder() / "data";

std::string error_of(const DataSource& source, bool classes = false, const std::filesystem::path& root = kData) {
  try {
    (void)load_data(source, classes ? kClassTargets : kNumberTargets, 1, root);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "(none)";
}

DataSource table(const std::filesystem::path& path, const std::string& target = "y") {
  DataSource source;
  source.train = path;
  source.target = target;
  source.where = "d.yaml:3";
  return source;
}

DataSource folder_of(const std::filesystem::path& path) {
  DataSource source;
  source.train = path;
  source.where = "d.yaml:3";
  return source;
}

TEST_CASE("digits are images in 0..1 with ten classes", "[dataset]") {
  DataSource source;
  source.name = "digits";
  const Dataset digits = load_data(source, kClassTargets, 1, kData).train;
  CHECK(digits.size == 1797);
  REQUIRE(digits.inputs.size() == 1);
  CHECK(digits.inputs[0].shape == Shape{1, 8, 8});
  CHECK(digits.inputs[0].dtype() == DType::kFloat32);
  CHECK(digits.target.shape.empty());
  CHECK(digits.target.dtype() == DType::kInt64);
  const auto& pixels = values<float>(digits.inputs[0].data);
  CHECK(pixels.size() == 1797 * 64);
  // scikit-learn's load_digits().images[0], first two rows.
  const std::vector<float> first = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(pixels[i] == first[i] / 16);
  const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
  CHECK(*low == 0);
  CHECK(*high == 1);
  // scikit-learn's numpy.bincount(load_digits().target)
  const auto& labels = values<std::int64_t>(digits.target.data);
  std::vector<int> counts(10);
  for (const std::int64_t label : labels) ++counts.at(static_cast<std::size_t>(label));
  CHECK(counts == std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
}

TEST_CASE("numbers that float32 does not hold are refused where the model takes it", "[dataset]") {
  const TemporaryFolder folder;
  const auto check = [&](const char* rows, const std::vector<DType>& inputs, DType dtype) {
    const DataSource source = table(folder.write("t.csv", std::string("a,b,y\n") + rows));
    const Splits splits = load_data(source, kNumberTargets, 1, kData, inputs);
    check_range(splits, source, inputs, dtype);
    return values<double>(splits.train.inputs[0].data);
  };
  const auto refuses = [](const char* name) {
    return Catch::Equals(std::string("d.yaml:3: data: ") + name +
                         ": found -1e+39, wanted numbers that float32 holds; scale them, or train.dtype: float64");
  };
  const char *in_x = "1,1e-400,0\n2,-1e39,1\n", *in_y = "1,2,0\n3,4,-1e39\n";
  CHECK(check(in_x, {DType::kFloat64}, DType::kFloat32) == std::vector<double>{1, 0, 2, -1e39});
  CHECK_NOTHROW(check(in_x, {}, DType::kFloat64));
  CHECK_THROWS_WITH(check(in_x, {DType::kFloat32}, DType::kFloat64), refuses("x"));
  CHECK_THROWS_WITH(check(in_x, {}, DType::kFloat32), refuses("x"));  // a model of layers has no types of its own
  CHECK_NOTHROW(check(in_y, {}, DType::kFloat64));
  CHECK_THROWS_WITH(check(in_y, {}, DType::kFloat32), refuses("y"));
}

TEST_CASE("the diabetes table is scaled as scikit-learn scales it", "[dataset]") {
  const Dataset data = load_data(table(kData / "diabetes.csv", "target"), kNumberTargets, 1, kData).train;
  CHECK(data.size == 442);
  CHECK(data.inputs[0].shape == Shape{10});
  const auto& x = values<double>(data.inputs[0].data);
  for (std::size_t c = 0; c < 10; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t r = 0; r < 442; ++r) {
      sum += x[10 * r + c];
      squares += x[10 * r + c] * x[10 * r + c];
    }
    CHECK(sum == Approx(0).margin(1e-7));
    CHECK(squares == Approx(1).epsilon(1e-8));
  }
  const auto& y = values<double>(data.target.data);
  CHECK(y[0] == 151);
  CHECK(std::accumulate(y.begin(), y.end(), 0.0) / 442 == Approx(152.13348416).epsilon(1e-9));
}

TEST_CASE("arrays come from folders, pairs of files and several inputs", "[dataset]") {
  const TemporaryFolder folder;
  folder.write("set/x.npy", npy<std::uint8_t>("|u1", "(3, 2)", {0, 1, 2, 3, 4, 255}));
  folder.write("set/more.npy", npy<double>("<f8", "(3,)", {1, 2, 3}));
  folder.write("set/y.npy", npy<std::int32_t>("<i4", "(3, 1)", {2, 0, 1}));

  const Dataset classes = load_data(folder_of(folder / "set"), kClassTargets, 1, kData).train;
  CHECK(classes.size == 3);
  CHECK(classes.inputs[0].data == Numbers(std::vector<float>{0, 1, 2, 3, 4, 255}));
  CHECK(classes.target.shape.empty());
  CHECK(classes.target.data == Numbers(std::vector<std::int64_t>{2, 0, 1}));

  DataSource two = folder_of(folder / "set");
  two.x = {"more", "x.npy"};
  const Dataset numbers = load_data(two, kNumberTargets, 1, kData).train;
  REQUIRE(numbers.inputs.size() == 2);
  CHECK(numbers.inputs[0].shape.empty());
  CHECK(numbers.inputs[0].dtype() == DType::kFloat64);
  CHECK(numbers.target.shape == Shape{1});
  CHECK(numbers.target.data == Numbers(std::vector<double>{2, 0, 1}));

  DataSource pair = folder_of(folder / "set/x.npy");
  pair.y = "y.npy";
  CHECK(load_data(pair, kClassTargets, 1, kData).train.target.data == classes.target.data);
}

TEST_CASE("inputs that take integers keep them", "[dataset]") {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> ids = {0, -1, std::int64_t{1} << 60, 7};
  folder.write("ids.npy", npy("<i8", "(2, 2)", ids));
  folder.write("mask.npy", npy<std::uint8_t>("|b1", "(2, 2)", {1, 0, 0, 1}));
  folder.write("x.npy", npy<std::int32_t>("<i4", "(2, 1)", {1, 2}));
  folder.write("y.npy", npy<std::int64_t>("<i8", "(2,)", {0, 1}));
  DataSource source = folder_of(folder / "");
  source.x = {"ids", "mask", "x"};
  const std::vector<DType> inputs = {DType::kInt64, DType::kBool, DType::kFloat32};
  const Dataset data = load_data(source, kClassTargets, 1, kData, inputs).train;
  CHECK(values<std::int64_t>(data.inputs[0].data) == ids);
  CHECK(values<std::int64_t>(data.inputs[1].data) == std::vector<std::int64_t>{1, 0, 0, 1});
  CHECK(values<double>(data.inputs[2].data) == std::vector<double>{1, 2});

  folder.write("ids.npy", npy<float>("<f4", "(2, 2)", {0, 1, 2, 0.5F}));
  CHECK_THROWS_WITH(load_data(source, kClassTargets, 1, kData, inputs),
                    Catch::EndsWith("ids.npy: found 0.5 at element 3, wanted a whole number, as for an integer "
                                    "input of the model or folds.groups"));
  folder.write("ids.npy", npy<float>("<f4", "(2, 2)", {0, 1, 2, 3}));
  CHECK(load_data(source, kClassTargets, 1, kData, inputs).train.inputs[0].dtype() == DType::kInt64);

  const DataSource csv = table(folder.write("t.csv", "a,b,y\n1,-2,0.5\n3,4,1.5\n"));
  const Dataset rows = load_data(csv, kNumberTargets, 1, kData, {DType::kInt32}).train;
  CHECK(values<std::int64_t>(rows.inputs[0].data) == std::vector<std::int64_t>{1, -2, 3, 4});

  DataSource digits;
  digits.name = "digits";
  digits.where = "d.yaml:3";
  CHECK_THROWS_WITH(
      load_data(digits, kClassTargets, 1, kData, {DType::kInt64}),
      "d.yaml:3: data: found pixels in 0..1 (digits), wanted whole numbers, which the model's input takes");
}

TEST_CASE("data that cannot be used are refused", "[dataset]") {
  const TemporaryFolder folder;
  const std::string three = npy<float>("<f4", "(3,)", {1, 2, 3});
  const std::string place = "d.yaml:3: data: ";
  const auto set = [&](const std::string& name, const std::string& x, const std::string& y) {
    folder.write(name + "/x.npy", x);
    folder.write(name + "/y.npy", y);
    return folder_of(folder / name);
  };
  CHECK_THAT(error_of(set("lengths", three, npy<float>("<f4", "(2,)", {1, 2}))),
             Catch::Contains("found 3 samples of x and 2 of y, wanted equally many"));
  CHECK_THAT(error_of(set("scalar", npy<float>("<f4", "()", {1}), three)),
             Catch::Contains("x: found an array of shape []"));
  CHECK_THAT(error_of(set("none", npy<float>("<f4", "(0, 2)", {}), three)),
             Catch::Contains("x: found an array of shape [0, 2]"));
  CHECK_THAT(error_of(set("thin", npy<float>("<f4", "(3, 0)", {}), three)),
             Catch::Contains("x: found an array of shape [3, 0]"));
  CHECK_THAT(error_of(set("negative", three, npy<std::int64_t>("<i8", "(3,)", {0, -1, 1})), true),
             Catch::Contains("y: found label -1 at element 1, wanted classes from 0"));
  CHECK_THAT(error_of(set("halves", three, npy<float>("<f4", "(3,)", {0, 0.5, 1})), true),
             Catch::Contains("y.npy: found label 0.5 at element 1, wanted a whole number"));

  CHECK(error_of(folder_of("/no/such.npz")) == place + "/no/such.npz: found no such file");
  for (const char* kind : {".npz", ".csv", ".safetensors", ".npy", ""}) {
    const std::string null = folder / ("null" + std::string(kind)), name = std::string(300, 'a') + kind;
    std::filesystem::create_symlink("/dev/null", null);
    CHECK(error_of(folder_of(null)) == place + null + ": found a device or pipe, wanted a file or a folder");
    CHECK_THAT(error_of(folder_of(name)), Catch::Contains("cannot be opened: File name too long"));
  }
  CHECK_THAT(
      error_of(folder_of(folder.write("d.parquet", "x"))),
      Catch::Contains(
          "found a file of kind '.parquet', wanted one of: CIFAR's binary files, or their folder; a folder of .npy "
          "files; .npz; .npy; .csv, .tsv"));
  CHECK_THAT(error_of(folder_of(folder.write("t.csv", "a,y\n1,2\n"))), Catch::Contains("target: found nothing"));
  CHECK_THAT(error_of(folder_of(folder.write("a/x.npy", three))), Catch::Contains("y: found nothing"));
  DataSource builtin;
  builtin.name = "digit";
  CHECK(error_of(builtin) == "data: name: found 'digit', wanted a built-in set; did you mean 'digits'?");
  builtin.name = "digits";
  CHECK_THAT(error_of(builtin, true, folder / "nowhere"), Catch::Contains("digits.csv: found no such file"));
  CHECK(error_of(DataSource{}) == "data: wanted either name or train");
}

TEST_CASE("validation and test files must look like the training data", "[dataset]") {
  const TemporaryFolder folder;
  DataSource source = table(folder.write("train.csv", "a,b,y\n1,2,3\n4,5,6\n"));
  source.validation_file = folder.write("val.csv", "y,b,more,a\n9,8,5,7\n");  // by name
  source.test_file = folder.write("test.csv", "a,b,y\n0,0,0\n");
  const Splits splits = load_data(source, kNumberTargets, 1, kData);
  CHECK(splits.train.size == 2);
  CHECK(splits.validation->inputs[0].data == Numbers(std::vector<double>{7, 8}));
  CHECK(splits.test->size == 1);

  source.validation_file = folder.write("narrow.csv", "a,y\n9,7\n");
  CHECK_THAT(error_of(source), Catch::Contains("narrow.csv: found no column 'b'"));
  source.validation = 0.5;
  source.validation_file = source.test_file;
  CHECK_THAT(error_of(source), Catch::Contains("wanted a fraction or a file, not both"));

  DataSource pair;
  pair.train = folder.write("p/x.npy", npy<float>("<f4", "(3,)", {1, 2, 3}));
  pair.y = "y.npy";
  folder.write("p/y.npy", npy<float>("<f4", "(3,)", {1, 2, 3}));
  pair.validation_file = folder.write("p/x2.npy", npy<float>("<f4", "(3,)", {4, 5, 6}));
  CHECK_THAT(error_of(pair), Catch::Contains("wanted a folder of its own"));
}

// Samples 0..n-1, whose one feature is their number.
Dataset numbered(std::int64_t n) {
  std::vector<double> x(static_cast<std::size_t>(n));
  std::iota(x.begin(), x.end(), 0.0);
  Dataset data;
  data.inputs.push_back({"x", {1}, x});
  data.target = {"y", {}, x};
  data.size = n;
  return data;
}

std::vector<double> members(const Dataset& data) { return values<double>(data.target.data); }

TEST_CASE("splits are disjoint, whole, of the sizes asked for, and stable", "[dataset]") {
  struct Fractions {
    std::int64_t n;
    std::optional<double> validation, test;
    std::int64_t train_size, validation_size, test_size;
  };
  for (const Fractions& c : std::vector<Fractions>{{10, 0.2, 0.2, 6, 2, 2},
                                                   {10, 0.25, {}, 7, 3, 0},
                                                   {10, {}, 0.5, 5, 0, 5},
                                                   {7, 0.1, 0.1, 5, 1, 1},
                                                   {1797, 0.2, 0.2, 1079, 359, 359},
                                                   {5, {}, {}, 5, 0, 0}}) {
    CAPTURE(c.n);
    const Splits splits = split(numbered(c.n), c.validation, c.test, 7, "d");
    CHECK(splits.train.size == c.train_size);
    CHECK(splits.validation.has_value() == (c.validation_size > 0));
    CHECK(splits.test.has_value() == (c.test_size > 0));
    std::multiset<double> all;
    for (const Dataset* part :
         {&splits.train, splits.validation ? &*splits.validation : nullptr, splits.test ? &*splits.test : nullptr}) {
      if (part == nullptr) continue;
      const std::vector<double> inside = members(*part);
      CHECK(std::is_sorted(inside.begin(), inside.end()));
      CHECK(static_cast<std::int64_t>(inside.size()) == part->size);
      CHECK(values<double>(part->inputs[0].data) == inside);
      all.insert(inside.begin(), inside.end());
    }
    if (splits.validation) CHECK(splits.validation->size == c.validation_size);
    if (splits.test) CHECK(splits.test->size == c.test_size);
    const std::vector<double> whole = members(numbered(c.n));
    CHECK(all == std::multiset<double>(whole.begin(), whole.end()));
  }
  const auto test_of = [](std::optional<double> validation, std::uint64_t seed) {
    return members(*split(numbered(100), validation, 0.2, seed, "d").test);
  };
  CHECK(test_of(0.2, 7) == test_of(0.2, 7));
  CHECK(test_of({}, 7) == test_of(0.4, 7));
  CHECK(test_of(0.2, 7) != test_of(0.2, 8));
}

TEST_CASE("empty splits are refused", "[dataset]") {
  CHECK_THROWS_WITH(split(numbered(10), 0.01, {}, 1, "d"),
                    "d: validation: found no samples in 0.01 of 10, wanted at least one");
  CHECK_THROWS_WITH(split(numbered(10), 0.5, 0.5, 1, "d"),
                    "d: found 10 samples of which validation and test take 10, wanted some for training");
  for (const double bad : {0.0, 1.0, -0.1, 2.0, static_cast<double>(NAN)}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(split(numbered(10), {}, bad, 1, "d"), Catch::Contains("wanted a fraction between 0 and 1"));
  }
}

TEST_CASE("an epoch's order is a permutation keyed by what it should be", "[dataset]") {
  const OrderOptions shuffled;
  const auto order = [](const OrderOptions& options, std::uint64_t seed, std::uint64_t trial, int epoch) {
    return epoch_order(50, options, seed, trial, epoch);
  };
  std::vector<std::int64_t> sorted = order(shuffled, 1, 0, 0);
  std::vector<std::int64_t> plain(50);
  std::iota(plain.begin(), plain.end(), std::int64_t{0});
  CHECK(sorted != plain);
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == plain);

  CHECK(order({.shuffle = false, .once = false, .per_trial = false}, 1, 0, 3) == plain);
  CHECK(order(shuffled, 1, 0, 3) == order(shuffled, 1, 9, 3));
  CHECK(order(shuffled, 1, 0, 3) != order(shuffled, 1, 0, 4));
  CHECK(order(shuffled, 1, 0, 3) != order(shuffled, 2, 0, 3));
  const OrderOptions once{.shuffle = true, .once = true, .per_trial = false};
  CHECK(order(once, 1, 0, 5) == order(shuffled, 1, 0, 0));
  const OrderOptions own{.shuffle = true, .once = false, .per_trial = true};
  CHECK(order(own, 1, 4, 3) == order(own, 1, 4, 3));
  CHECK(order(own, 1, 4, 3) != order(own, 1, 5, 3));
  CHECK(order(own, 1, 0, 3) != order(shuffled, 1, 0, 3));
  CHECK(epoch_order(1, shuffled, 1, 0, 0) == std::vector<std::int64_t>{0});
  CHECK(epoch_order(0, shuffled, 1, 0, 0).empty());
}

TEST_CASE("every place of an order is equally likely", "[dataset]") {
  // Where sample 0 of 5 lands in 5000 epochs: 1000 each, standard deviation 28.
  std::vector<int> landed(5);
  for (int epoch = 0; epoch < 5000; ++epoch) {
    const auto order = epoch_order(5, {}, 3, 0, epoch);
    ++landed[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (const int count : landed) CHECK(std::abs(count - 1000) < 150);
}

}  // namespace
}  // namespace hfta::fusion::test
