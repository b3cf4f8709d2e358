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

TEST_CASE("recorded configurations: a trial gets the curve of the nearest") {
  constexpr const char* kText =
      "trial,param.lr,param.wd,param.dropout,param.hidden,epoch,val_loss\n"
      "3,0.1,0,0.35,64,1,0.3\n3,,,,,2,0.2\n"
      "1,1e-4,0.001,0.0,32,1,0.5\n1,1e-4,,,,2,0.4\n"
      "2,0.1,0,0.35,64,1,0.9\n"
      "4,1,1e-4,0.7,96,1,0.6\n"
      "5,,0,,64,1,0.7\n";
  const SimulationFolder folder;
  const auto curves = read_curves(written(folder, kText), digits_study(kLines));
  struct Case {
    double lr, wd, dropout;
    std::int64_t hidden;
    double nearest;
  };
  const Case cases[] = {
      {0.1, 0, 0.35, 64, 0.9},      // trials 2 and 3 are alike: the lower counts
      {0.02, 0, 0.3, 64, 0.9},      // 0.1 is near on a logarithmic scale
      {1e-4, 1e-3, 0.1, 32, 0.5},   // exact but for the dropout
      {1e-4, 1e-3, 0.7, 128, 0.5},  // two words away from all others
      {1, 1e-4, 0.7, 128, 0.6},     // 96 is none of the study's values: it is as far from each of them
  };
  for (const Case& c : cases) {
    CAPTURE(c.lr, c.wd, c.dropout, c.hidden);
    const trials::ParamValue wd = c.wd == 0 ? trials::ParamValue(std::int64_t{0}) : trials::ParamValue(c.wd);
    const trials::Params p = {{"lr", c.lr}, {"wd", wd}, {"dropout", c.dropout}, {"hidden", c.hidden}};
    for (const int number : {0, 1, 77}) CHECK(curves->at(number, p, 1).at("val_loss") == c.nearest);
  }
  CHECK(curves->at(0, params(1e-4, 0.0), 1).at("val_loss") == 0.9);
  CHECK(curves->at(0, {{"wd", std::int64_t{0}}, {"hidden", std::int64_t{64}}}, 1).at("val_loss") == 0.7);
}

TEST_CASE("gzipped curves are read as they are") {
  const SimulationFolder folder;
  // printf 'trial,epoch,val_loss\n1,1,0.25\n' | gzip -n
  constexpr unsigned char kBytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2b, 0x29, 0xca,
                                      0x4c, 0xcc, 0xd1, 0x49, 0x2d, 0xc8, 0x4f, 0xce, 0xd0, 0x29, 0x4b, 0xcc, 0x89,
                                      0xcf, 0xc9, 0x2f, 0x2e, 0xe6, 0x32, 0xd4, 0x31, 0xd4, 0x31, 0xd0, 0x33, 0x32,
                                      0xe5, 0x02, 0x00, 0x4f, 0x07, 0xde, 0x9e, 0x1e, 0x00, 0x00, 0x00};
  std::ofstream(folder.path() / "curves.csv.gz").write(reinterpret_cast<const char*>(kBytes), sizeof kBytes);
  CHECK(read_curves(folder.path() / "curves.csv.gz", digits_study(kLines))->at(0, {}, 1).at("val_loss") == 0.25);
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
                        {"trial,epoch,val_loss\n1,1,low\n", "curves.csv:2: found 'low', wanted a number"},
                        {"trial,epoch,val_loss,param.lr,param.wd,param.dropout\n1,1,1,1,0,0\n",
                         "curves.csv: found no column 'param.hidden', wanted one for each parameter"},
                        {"trial,epoch,val_loss,param.lr,param.wd,param.dropout,param.hidden,param.hiden\n",
                         "curves.csv: found a column 'param.hiden', wanted parameters of the study only; did you mean"},
                        {"trial,epoch,val_loss,param.lr,param.wd,param.dropout,param.hidden\n"
                         "1,1,1,1,0,0,64\n1,2,1,1,0,0.5,64\n",
                         "curves.csv:3: param.dropout: found '0.5', wanted '0', as in the trial's first row"}};
  const SimulationFolder folder;
  const StudyConfig config = digits_study(kLines);
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK_THROWS_WITH(read_curves(written(folder, c.text), config), Catch::Contains(c.message));
  }
  CHECK_THROWS_AS(read_curves(folder.path() / "absent.csv", config), Error);
}
