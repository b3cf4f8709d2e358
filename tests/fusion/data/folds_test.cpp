// Cross-validation: how samples are dealt, and the data of each fold.
#include "fusion/data/folds.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "error_of.hpp"
#include "fusion/data/split.hpp"
#include "npy_text.hpp"
#include "temporary_folder.hpp"
#include "tests/source_folder.hpp"
#include "values.hpp"

namespace hfta::fusion::test {
namespace {

const std::filesystem::path kData = hfta::testing::source_folder() / "data";

std::vector<std::int64_t> random_numbers(int size, std::uint64_t below, std::uint64_t item) {
  CountedRandom random(3, Stream::kSimulation, item);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < size; ++i) numbers.push_back(static_cast<std::int64_t>(random.below(below)));
  return numbers;
}

// Samples by part and class.
std::map<std::int64_t, std::vector<int>> counts_of(const std::vector<int>& folds, int count,
                                                   const std::vector<std::int64_t>& classes) {
  std::map<std::int64_t, std::vector<int>> counts;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    std::vector<int>& of_class = counts[classes.empty() ? 0 : classes[i]];
    of_class.resize(static_cast<std::size_t>(count));
    if (folds[i] >= 0) ++of_class.at(static_cast<std::size_t>(folds[i]));
  }
  return counts;
}

int spread(const std::vector<int>& counts) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return *most - *least;
}

std::vector<int> sizes_of(const std::vector<int>& folds, int count) { return counts_of(folds, count, {})[0]; }

int left_out(const std::vector<int>& folds) { return static_cast<int>(std::count(folds.begin(), folds.end(), -1)); }

}  // namespace

TEST_CASE("parts are equally large, and where they are stratified differ by at most one sample of a class", "[folds]") {
  for (const int size : {5, 23, 100}) {
    for (const int count : {2, 3, 5}) {
      INFO(size << " samples in " << count << " parts");
      const std::vector<int> plain = deal_folds(size, count, {}, {}, 7);
      CHECK(spread(sizes_of(plain, count)) == 0);
      CHECK(left_out(plain) == size % count);
      CHECK(deal_folds(size, count, {}, {}, 7) == plain);
      CHECK((size < 20 || deal_folds(size, count, {}, {}, 8) != plain));
      const std::vector<std::int64_t> classes = random_numbers(size, 4, 0);
      const std::vector<int> stratified = deal_folds(size, count, classes, {}, 7);
      CHECK(spread(sizes_of(stratified, count)) == 0);
      CHECK(left_out(stratified) == size % count);
      for (const auto& [label, counts] : counts_of(stratified, count, classes)) CHECK(spread(counts) <= 1);
    }
  }
}

TEST_CASE("a rare class is validated, whatever its number", "[folds]") {
  const auto [many, few, count] = GENERATE(table<int, int, int>({{101, 8, 10}, {98, 4, 5}, {10, 3, 5}, {203, 6, 10}}));
  for (const int rare : {0, 1}) {
    std::vector<std::int64_t> classes(static_cast<std::size_t>(many), 1 - rare);
    classes.insert(classes.end(), static_cast<std::size_t>(few), rare);
    const std::vector<int> folds = deal_folds(many + few, count, classes, {}, 7);
    CHECK(left_out(folds) == (many + few) % count);
    CHECK(std::count(folds.end() - few, folds.end(), -1) == 0);
    CHECK(spread(counts_of(folds, count, classes).at(rare)) <= 1);
  }
}

TEST_CASE("groups stay together, in parts as even as they allow", "[folds]") {
  const std::vector<std::int64_t> groups = random_numbers(300, 30, 1), classes = random_numbers(300, 3, 2);
  std::map<std::int64_t, int> sizes;
  for (const std::int64_t group : groups) ++sizes[group];
  int largest = 0;
  for (const auto& [group, size] : sizes) largest = std::max(largest, size);
  for (const bool stratified : {false, true}) {
    const auto labels = stratified ? classes : std::vector<std::int64_t>();
    const std::vector<int> folds = deal_folds(300, 4, labels, groups, 7);
    std::map<std::int64_t, std::set<int>> parts_of;
    for (std::size_t i = 0; i < folds.size(); ++i) parts_of[groups[i]].insert(folds[i]);
    for (const auto& [group, parts] : parts_of) CHECK(parts.size() == 1);
    CHECK(spread(sizes_of(folds, 4)) <= largest);
    if (!stratified) continue;
    for (const auto& [label, counts] : counts_of(folds, 4, classes)) {
      INFO("class " << label);
      CHECK(spread(counts) <= largest);
    }
  }
  // Parts that have none of a group's classes are alike to it but for their sizes: of 3 classes of 3 groups no part is
  // empty, and of 10 classes of 6 groups no part is larger by more than two groups.
  for (const int per_class : {3, 6}) {
    std::vector<std::int64_t> of_class, of_group;
    for (std::int64_t i = 0; i < 4 * per_class * (per_class == 3 ? 3 : 10); ++i) {
      of_group.push_back(i / 4);
      of_class.push_back(i / 4 / per_class);
    }
    const std::size_t size = of_group.size();
    const std::vector<int> even = sizes_of(deal_folds(static_cast<std::int64_t>(size), 5, of_class, of_group, 7), 5);
    CHECK(spread(even) <= 8);
    CHECK(*std::min_element(even.begin(), even.end()) > 0);
  }
  // Largest first, each into the smallest part: 4 | 3 | 2+1, worked by hand.
  const std::vector<std::int64_t> few = {9, 9, 9, 9, 5, 5, 5, 2, 2, 1};
  const std::vector<int> dealt = deal_folds(10, 3, {}, few, 1);
  CHECK(dealt == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("samples validate once, all but a few, and train in all other folds", "[folds]") {
  DataSource source;
  source.name = "digits";
  source.folds = {5, 0, true, ""};
  source.test = 0.2;
  std::map<std::vector<float>, int> validated, trained;
  std::int64_t rest = 0, test_size = 0;
  for (int fold = 0; fold < 5; ++fold) {
    source.folds.fold = fold;
    const Splits splits = load_data(source, kClassTargets, 1, kData);
    REQUIRE(splits.validation);
    REQUIRE(splits.test);
    rest = splits.train.size + splits.validation->size;
    test_size = splits.test->size;
    CHECK(splits.validation->size == rest / 5);
    for (const auto& [part, seen] : {std::pair(&*splits.validation, &validated), std::pair(&splits.train, &trained)}) {
      const auto pixels = values<float>(part->inputs[0], part->size);
      for (std::int64_t i = 0; i < part->size; ++i) {
        ++(*seen)[{pixels.begin() + i * 64, pixels.begin() + (i + 1) * 64}];
      }
    }
  }
  CHECK(rest + test_size == 1797);
  CHECK(test_size == 359);
  int all = 0;
  for (const auto& [image, times] : validated) {
    all += times;
    CHECK(trained[image] >= 4 * times);
  }
  CHECK(all == rest / 5 * 5);
}

TEST_CASE("groups are read beside the data, and are no feature of a table", "[folds]") {
  const TemporaryFolder folder;
  const auto patient_of = [](int sample) { return sample * 7 % 40 / 4; };
  {
    std::ofstream csv(folder / "t.csv");
    csv << "a,patient,b,y\n";
    for (int i = 0; i < 40; ++i) csv << i << "," << patient_of(i) << "," << 2 * i << "," << i % 2 << "\n";
  }
  DataSource source;
  source.train = folder / "t.csv";
  source.target = "y";
  source.folds = {5, 2, false, "patient"};
  const auto patients_in = [&](const Dataset& part) {
    std::set<int> all;
    const auto rows = values<double>(part.inputs[0], part.size);
    for (std::int64_t i = 0; i < part.size; ++i) {
      all.insert(patient_of(static_cast<int>(rows[static_cast<std::size_t>(2 * i)])));
    }
    return all;
  };
  for (const bool tested : {false, true}) {
    source.test = tested ? std::optional(0.25) : std::nullopt;
    const Splits splits = load_data(source, kClassTargets, 1, kData);
    CHECK(splits.train.inputs[0].shape == Shape{2});
    std::vector<std::set<int>> parts = {patients_in(splits.train), patients_in(*splits.validation)};
    if (tested) {
      parts.push_back(patients_in(*splits.test));
      CHECK(splits.test->size == 8);  // as near to a quarter of 40 as a group of four comes first
    }
    std::size_t patients = 0;
    for (const std::set<int>& part : parts) patients += part.size();
    CHECK(patients == 10);
    if (!tested) CHECK(parts.back().size() == 2);
  }
}

TEST_CASE("test data beside groups are whole groups", "[folds]") {
  const Dataset numbers{{{"x", {}, Numbers(std::vector<float>(100))}}, {}, 100, 0, false};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::vector<std::int64_t> groups = random_numbers(100, 12, seed);
    const auto tested = [&](double fraction) { return split(numbers, {}, fraction, seed, "", groups).test->size; };
    CHECK(std::abs(tested(0.3) - 30) <= 6);
    for (std::size_t i = 0; i < 100; ++i) groups[i] = i < 70 ? 1 : 2;
    CHECK(tested(0.3) == 30);
    CHECK((tested(0.6) == 30 || tested(0.6) == 70));
    CHECK((tested(0.01) == 30 || tested(0.01) == 70));
    CHECK(tested(0.9) < 100);  // some group is left
    groups.assign(100, 5);
    CHECK_THAT(error_of([&] { static_cast<void>(tested(0.5)); }), Catch::Contains("folds.groups: found one group"));
  }
}

TEST_CASE("folds that cannot be made are refused with words", "[folds]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "t.csv") << "a,g,y\n1,1,0.5\n2,1,0.5\n3,2,0.5\n4,2,0.5\n";
  DataSource table;
  table.train = folder / "t.csv";
  table.target = "y";
  const auto message = [&](const FoldSource& folds, DataSource source) {
    source.folds = folds;
    return error_of([&] { (void)load_data(source, kNumberTargets, 1, kData); });
  };
  CHECK_THAT(message({5, 0, false, ""}, table), Catch::Contains("found 4 samples, wanted at least 5"));
  CHECK_THAT(message({3, 0, false, "g"}, table), Catch::Contains("found 2 groups, wanted at least 3"));
  CHECK_THAT(message({2, 0, true, ""}, table), Catch::Contains("folds.stratified: found no targets"));
  CHECK_THAT(message({2, 0, false, "h"}, table), Catch::Contains("found no column 'h'"));
  CHECK_THAT(message({2, 0, false, "y"}, table), Catch::Contains("'0.5', wanted a whole number"));
  DataSource digits;
  digits.name = "digits";
  CHECK_THAT(message({2, 0, false, "g"}, digits), Catch::Contains("folds.groups: found g, wanted none"));
  digits.validation = 0.2;
  CHECK_THAT(message({2, 0, false, ""}, digits), Catch::Contains("validation: found it beside folds"));
  DataSource tokens;
  tokens.train = folder / "t.bin";
  tokens.window = 4;
  std::ofstream(tokens.train, std::ios::binary) << std::string(200, 'x');
  tokens.folds = {2, 0, false, ""};
  CHECK_THAT(error_of([&] { (void)load_data(tokens, kNoTargets, 1, kData, {DType::kInt64}); }),
             Catch::Contains("folds: found windows over one sequence"));
}

}  // namespace hfta::fusion::test
