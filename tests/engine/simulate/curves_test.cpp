// Curves that simulations take in place of training.

#include "engine/simulate/curves.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "base/temporary_folder.hpp"
#include "studies.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

struct SimulationFolder : TemporaryFolder {
  SimulationFolder() : TemporaryFolder("hfta-simulated") {}
};

constexpr const char* kLines =
    "method: random\nrun_cap: 10\n"
    "train: {epochs: 3, loss: cross_entropy, optimizer: {name: sgd, lr: \"${lr}\", weight_decay: \"${wd}\"}}\n";

trials::Params params(double lr, double dropout) {
  return {{"lr", lr}, {"wd", std::int64_t{0}}, {"dropout", dropout}, {"hidden", std::int64_t{64}}};
}

std::filesystem::path written(const SimulationFolder& folder, const std::string& text) {
  std::ofstream(folder.path() / "curves.csv") << text;
  return folder.path() / "curves.csv";
}

}  // namespace

TEST_CASE("invented curves fall, depend on the parameters, and are the same every time") {
  const StudyConfig config = digits_study(kLines);
  const auto curves = make_invented_curves(config), again = make_invented_curves(config);
  int falling = 0, diverged = 0;
  double least = 10, most = 0;
  for (int number = 0; number < 200; ++number) {
    const trials::Params p = params(std::pow(10, -4 + number % 20 * 0.2), number / 20 * 0.07);
    const double first = curves->at(number, p, 1).at("val_loss"), last = curves->at(number, p, 27).at("val_loss");
    CHECK(curves->at(number, p, 9).size() >= 2);
    if (std::isnan(last)) {
      ++diverged;
      continue;
    }
    CHECK(again->at(number, p, 27).at("val_loss") == last);
    falling += last < first ? 1 : 0;
    least = std::min(least, last);
    most = std::max(most, last);
  }
  CHECK(falling > 180);
  CHECK(most > least + 0.2);
  CHECK(diverged >= 1);
  CHECK(diverged <= 12);
}

TEST_CASE("recorded curves are dealt to trials in turn, and stay where they end") {
  const SimulationFolder folder;
  const StudyConfig config = digits_study(kLines);
  const auto curves =
      read_curves(written(folder, "trial,epoch,val_loss,train_loss\n7,1,0.5,0.6\n7,2,0.4,0.5\n9,1,0.3,\n"), config);
  CHECK(curves->at(0, {}, 1).at("val_loss") == 0.5);
  CHECK(curves->at(0, {}, 2).at("train_loss") == 0.5);
  CHECK(curves->at(0, {}, 50).at("val_loss") == 0.4);
  CHECK(curves->at(1, {}, 1).at("val_loss") == 0.3);
  CHECK(std::isnan(curves->at(1, {}, 1).at("train_loss")));
  CHECK(curves->at(2, {}, 1).at("val_loss") == 0.5);
}

TEST_CASE("files of curves are CSV as spreadsheets write it") {
  const SimulationFolder folder;
  const StudyConfig config = digits_study(kLines);
  const auto curves = read_curves(
      written(folder, "\xEF\xBB\xBF\"trial\",epoch,\"val_loss\",\"a, b\"\r\n1,1,\"0.5\",2\r\n\r\n"), config);
  CHECK(curves->at(0, {}, 1).at("val_loss") == 0.5);
  CHECK(curves->at(0, {}, 1).at("a, b") == 2);
}

TEST_CASE("files of curves that cannot be used are refused with the place") {
  struct Case {
    const char *text, *message;
  };
  const Case cases[] = {{"", "curves.csv: cannot be read, or is empty"},
                        {"trial,epoch,val_loss\n", "found no rows"},
                        {"trial,epoch,val_los\n1,1,1\n", "found no column 'val_loss'"},
                        {"epoch,val_loss\n1,1\n", "found no column 'trial'"},
                        {"trial,epoch,val_loss\n1,2,0.5\n", "curves.csv:2: epoch: found 2, wanted 1"},
                        {"trial,epoch,val_loss\n1,1,0.5\n1,3,0.5\n", "curves.csv:3: epoch: found 3, wanted 2"},
                        {"trial,epoch,val_loss\n1,1\n", "curves.csv:2: found 2 fields, wanted 3"},
                        {"trial,epoch,val_loss\n1,1,low\n", "curves.csv:2: found 'low', wanted a number"}};
  const SimulationFolder folder;
  const StudyConfig config = digits_study(kLines);
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK_THROWS_WITH(read_curves(written(folder, c.text), config), Catch::Contains(c.message));
  }
  CHECK_THROWS_AS(read_curves(folder.path() / "absent.csv", config), Error);
}
